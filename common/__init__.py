"""What all need: errors for people, processes, namespaces, the sandbox, JSON lines."""
