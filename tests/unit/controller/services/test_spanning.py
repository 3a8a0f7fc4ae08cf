"""The least tree that spans some hosts."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest

from gradbed.controller.systems.aggregation.placement.spanning import least_spanning_edges
from gradbed.topo.registry import parse_topology


@pytest.mark.parametrize(
    ("kind", "hosts", "edges"),
    [
        ("star:5", ["h1"], 0),
        ("star:5", ["h1", "h4", "h5"], 3),
        ("fat-tree:4", ["h1", "h2"], 2),
        ("fat-tree:4", ["h1", "h3"], 4),
        ("fat-tree:4", ["h1", "h5"], 6),
        ("leaf-spine:4,2,4", ["h1", "h2", "h5", "h9", "h13"], 9),
    ],
)
def test_known_trees(kind: str, hosts: list[str], edges: int) -> None:
    assert least_spanning_edges(parse_topology(kind), hosts) == edges


def test_none_has_fewer_edges() -> None:
    """Every set of switches that connects the hosts, tried one after the other."""
    topology = parse_topology("leaf-spine:3,3,2")
    hosts = ["h1", "h3", "h4", "h6"]
    graph = nx.Graph((link.a.node, link.b.node) for link in topology.links)
    switches = [switch.name for switch in topology.switches]
    least = min(
        len(hosts) + count - 1
        for count in range(len(switches) + 1)
        for chosen in itertools.combinations(switches, count)
        if nx.is_connected(graph.subgraph([*hosts, *chosen]))
    )
    assert least_spanning_edges(topology, hosts) == least
