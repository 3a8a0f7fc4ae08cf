"""Dragonfly and torus: sizes, wiring, distances, limits."""

from __future__ import annotations

from itertools import combinations

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.generators import dragonfly, torus
from gradbed.topo.graph import Topology


def between_switches(topology: Topology) -> networkx.Graph:
    return topology.graph.subgraph(switch.name for switch in topology.switches)


@pytest.mark.parametrize(
    ("groups", "routers", "hosts"), [(9, 4, 2), (3, 2, 1), (4, 2, 1), (5, 1, 3), (1, 3, 1), (8, 3, 2)]
)
def test_dragonfly(groups: int, routers: int, hosts: int) -> None:
    topology = dragonfly(groups, routers, hosts)
    assert len(topology.switches) == groups * routers
    assert len(topology.hosts) == groups * routers * hosts
    own = groups * routers * (routers - 1) // 2
    assert len(topology.switch_links) == own + groups * (groups - 1) // 2
    assert networkx.is_connected(topology.graph)
    group_of = {switch.name: int(switch.name[1:].split("_")[0]) for switch in topology.switches}
    crossing = [
        frozenset((group_of[link.a.node], group_of[link.b.node]))
        for link in topology.switch_links
        if group_of[link.a.node] != group_of[link.b.node]
    ]
    assert sorted(map(sorted, crossing)) == [list(pair) for pair in combinations(range(groups), 2)]
    # At most: to the router with the global link, over it, and from where it ends.
    assert networkx.diameter(between_switches(topology)) <= 3


def test_the_global_links_of_a_balanced_dragonfly_are_shared_out_evenly() -> None:
    """a = 2p = 2h, all a h + 1 groups: every router has h global links (Kim et al., section 3.1)."""
    topology = dragonfly(9, 4, 2)
    assert {topology.graph.degree[switch.name] for switch in topology.switches} == {2 + 3 + 2}
    assert networkx.diameter(topology.graph) == 5


@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 3, 3), (2, 2, 2), (5, 3, 2), (4, 1, 1)])
def test_torus(sizes: tuple[int, int, int]) -> None:
    topology = torus(*sizes)
    x, y, z = sizes
    assert len(topology.hosts) == len(topology.switches) == x * y * z
    degree = 1 + sum({1: 0, 2: 1}.get(size, 2) for size in sizes)
    assert {topology.graph.degree[switch.name] for switch in topology.switches} == {degree}
    assert networkx.diameter(topology.graph) == 2 + sum(size // 2 for size in sizes)
    for link in topology.switch_links:
        a, b = ([int(part) for part in end.node[1:].split("_")] for end in (link.a, link.b))
        steps = [(j - i) % size for i, j, size in zip(a, b, sizes, strict=True)]
        assert sorted(steps) == [0, 0, 1]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dragonfly(0, 1, 1), "1 to 250 groups, got 0"),
        (lambda: dragonfly(1, 251, 1), "1 to 250 routers in a group, got 251"),
        (lambda: dragonfly(1, 1, 0), "1 to 250 hosts per router, got 0"),
        (lambda: torus(0, 1, 1), "at least one place in each dimension"),
        (lambda: torus(300, 300, 1), "at most 62500"),
    ],
)
def test_impossible_sizes(build, words: str) -> None:
    with pytest.raises(UserError, match=words):
        build()
