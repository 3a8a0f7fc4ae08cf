"""A graph as a running network: Mininet's hosts, the processes of its switches, links."""
