"""Code that all packages share: errors for people, processes, namespaces, the sandbox, JSON lines."""
