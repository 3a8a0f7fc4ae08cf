"""Hosts of a GraphML file that has none get names that no node has."""

from __future__ import annotations

from pathlib import Path

import networkx

from gradbed.topo.files.topology_file import read_topology


def test_names_that_nodes_have_are_passed_over(tmp_path: Path) -> None:
    graph = networkx.Graph([("h1", "h1_"), ("h1_", "h2")])
    networkx.write_graphml(graph, tmp_path / "named.graphml")
    topology = read_topology(str(tmp_path / "named.graphml"))
    assert topology is not None
    assert {switch.name for switch in topology.switches} == {"h1", "h1_", "h2"}
    assert {host.name for host in topology.hosts} == {"h1__", "h2_", "h3"}
