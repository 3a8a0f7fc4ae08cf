"""Where nodes stand on the page: tiers above each other where the graph has some, else wherever links pull them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import networkx

Place = tuple[float, float]
"""x and y from 0 to 1; y 0 is at the top."""

MOST_SPRINGS = 150
"""Nodes for which the better of the two layouts by forces takes no second."""


def places(nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]) -> dict[str, Place]:
    """nodes: name and tier (None: a host); links: a and b."""
    graph = networkx.Graph()
    graph.add_nodes_from(node["name"] for node in nodes)
    graph.add_edges_from((link["a"], link["b"]) for link in links)
    tiers = _tiers(nodes, graph)
    switches = sum(1 for node in nodes if node["tier"] is not None)
    if len(tiers) < 3 and switches > 1:
        return _by_forces(graph)
    return _in_rows(tiers, graph)


def _tiers(nodes: Sequence[Mapping[str, Any]], graph: networkx.Graph) -> list[list[str]]:
    """From the hosts upwards: a tier stands above those that are nearer to hosts."""
    hosts = [node["name"] for node in nodes if node["tier"] is None]
    near = networkx.multi_source_dijkstra_path_length(graph, hosts) if hosts else {}
    members: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if node["tier"] is not None:
            members[node["tier"]].append(node["name"])
    above = sorted(members, key=lambda tier: (fmean(near.get(name, 0) for name in members[tier]), tier))
    return [hosts, *(members[tier] for tier in above)]


def _in_rows(tiers: Sequence[Sequence[str]], graph: networkx.Graph) -> dict[str, Place]:
    found: dict[str, Place] = {}
    height = max(1, len(tiers) - 1)
    for row, tier in enumerate(tiers):
        below = {name: [found[other][0] for other in graph[name] if other in found] for name in tier}
        ordered = sorted(tier, key=lambda name: fmean(below[name] or [0.0])) if row else list(tier)
        for place, name in enumerate(ordered):
            found[name] = ((place + 0.5) / len(ordered), 1 - row / height)
    return found


def _by_forces(graph: networkx.Graph) -> dict[str, Place]:
    if len(graph) <= MOST_SPRINGS:
        made = networkx.kamada_kawai_layout(graph)
    else:
        made = networkx.spring_layout(graph, seed=1, iterations=60)
    xs, ys = zip(*made.values(), strict=True)
    width, height = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    return {name: (float((x - min(xs)) / width), float((y - min(ys)) / height)) for name, (x, y) in made.items()}
