"""Agents in the namespaces of their hosts, on the kernel's network and the machine's clock."""
