"""Topologies that others wrote down: topology.json of p4lang/tutorials, p4app.json of p4-utils."""

from topo.files.topology_file import TopologyFile, read_topology, topology_file

__all__ = ["TopologyFile", "read_topology", "topology_file"]
