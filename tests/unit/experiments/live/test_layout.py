"""Tiers stand above each other; other graphs are drawn apart."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from math import dist

import pytest

from gradbed.experiments.live.recording import Place, places
from gradbed.topo.registry import parse_topology


def laid_out(kind: str) -> tuple[dict[str, Place], dict[str, str | None]]:
    """Places, and tiers, by node."""
    topology = parse_topology(kind)
    tiers: dict[str, str | None] = {host.name: None for host in topology.hosts}
    tiers |= {switch.name: switch.tier for switch in topology.switches}
    nodes = [{"name": name, "tier": tier} for name, tier in tiers.items()]
    return places(nodes, [{"a": link.a.node, "b": link.b.node} for link in topology.links]), tiers


@pytest.mark.parametrize(
    ("kind", "downwards"),
    [
        ("fat-tree:4", ["core", "aggregation", "edge", None]),
        ("leaf-spine:3,2,2", ["spine", "leaf", None]),
        ("star:5", ["hub", None]),
    ],
)
def test_tiers_stand_above_each_other(kind: str, downwards: list[str | None]) -> None:
    found, tiers = laid_out(kind)
    heights = defaultdict(set)
    for name, (_, y) in found.items():
        heights[tiers[name]].add(y)
    assert all(len(ys) == 1 for ys in heights.values())
    rows = [heights[tier].pop() for tier in downwards]
    assert rows == sorted(rows)
    assert (rows[0], rows[-1]) == (0, 1)


@pytest.mark.parametrize("kind", ["fat-tree:6", "star:9", "dragonfly:5,2,2", "torus:3,3,2", "bcube:3,1"])
def test_nodes_do_not_stand_on_each_other(kind: str) -> None:
    found, tiers = laid_out(kind)
    assert found.keys() == tiers.keys()
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.values())
    assert min(dist(a, b) for a, b in combinations(found.values(), 2)) > 0.01
