"""Where nodes are drawn: apart from each other, hosts below their switches or outside them."""

from __future__ import annotations

import itertools
import math

import pytest

from gradbed.topo.drawing import is_ring, node_positions
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology

KINDS = ("star:1", "star:9", "fat-tree:4", "leaf-spine:4,2,4", "bcube:3,1", "torus:3,3,1", "dragonfly:3,2,2")


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_nodes_touch(kind: str) -> None:
    topology = parse_topology(kind, LinkModel())
    found = node_positions(topology)
    assert set(found) == set(topology.graph)
    assert all(math.dist(a, b) > 0.7 for a, b in itertools.combinations(found.values(), 2))
    assert all(x >= -0.5 and y >= -0.5 for x, y in found.values())


@pytest.mark.parametrize("kind", KINDS[:4])
def test_tiers_stand_above_each_other(kind: str) -> None:
    topology = parse_topology(kind, LinkModel())
    found = node_positions(topology)
    assert not is_ring(topology)
    for link in topology.host_links:
        host, switch = sorted((link.a.node, link.b.node), key=topology.is_host, reverse=True)
        assert found[host][1] > found[switch][1]
    assert len({found[host.name][1] for host in topology.hosts}) == 1


@pytest.mark.parametrize("kind", ["torus:3,3,1", "dragonfly:3,2,2"])
def test_switches_without_tiers_stand_in_a_ring_inside_their_hosts(kind: str) -> None:
    topology = parse_topology(kind, LinkModel())
    found = node_positions(topology)
    assert is_ring(topology)
    centre = tuple(sum(found[s.name][axis] for s in topology.switches) / len(topology.switches) for axis in (0, 1))
    inner = max(math.dist(found[switch.name], centre) for switch in topology.switches)
    assert all(math.dist(found[host.name], centre) > inner for host in topology.hosts)
