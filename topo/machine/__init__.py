"""What of the machine networks are made of: namespaces, interfaces, processes."""
