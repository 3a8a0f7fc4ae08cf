"""Topologies that others wrote down: topology.json of p4lang/tutorials, p4app.json and network.py of p4-utils."""

from gradbed.topo.files.topology_file import TopologyFile, is_topology_file, read_topology, topology_file, unread_file

__all__ = ["TopologyFile", "is_topology_file", "read_topology", "topology_file", "unread_file"]
