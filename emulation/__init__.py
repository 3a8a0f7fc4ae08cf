"""A graph as a running network of the kernel: Mininet's hosts, the processes of its switches, links."""
