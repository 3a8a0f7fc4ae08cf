"""Where nodes of a topology are drawn: hosts below their switches, or, where switches have no tiers, in a ring."""

from __future__ import annotations

import math
from collections.abc import Mapping

import networkx

from gradbed.topo.graph import Topology

Place = tuple[float, float]

RING_SHARE = 0.5
"""From which share of the links between switches on that join switches of one height, such as in a torus, these are
put in a ring."""
OUTSIDE = 1.3
"""Hosts of a ring, seen from their switches."""


def heights(topology: Topology) -> Mapping[str, int]:
    """How many links each node is from the nearest host; 0 for what none can reach."""
    hosts = [host.name for host in topology.hosts]
    lengths = networkx.multi_source_dijkstra_path_length(topology.graph, hosts, weight=None) if hosts else {}
    return {name: lengths.get(name, 0) for name in topology.graph}


def rows(topology: Topology) -> list[list[str]]:
    """Nodes of the same height in the topology's order, hosts first."""
    found: dict[int, list[str]] = {}
    of = heights(topology)
    for node in (*topology.hosts, *topology.switches):
        found.setdefault(of[node.name], []).append(node.name)
    return [row for _, row in sorted(found.items())]


def is_ring(topology: Topology) -> bool:
    """Whether the switches are better put in a ring than in rows."""
    of = heights(topology)
    links = topology.switch_links
    level = sum(of[link.a.node] == of[link.b.node] for link in links)
    return len(topology.switches) > 2 and level > RING_SHARE * len(links)


def places(topology: Topology) -> dict[str, Place]:
    """Return x and y of every node, from 0 on, in units of the distance between neighbours; y grows downwards."""
    return _ring(topology) if is_ring(topology) else _tiers(topology)


def _tiers(topology: Topology) -> dict[str, Place]:
    levels = rows(topology)
    width = max(map(len, levels), default=0)
    step = max(1.6, width / 7)
    return {
        name: ((number + 0.5) * width / len(row) - 0.5, step * (len(levels) - 1 - level))
        for level, row in enumerate(levels)
        for number, name in enumerate(row)
    }


def _ring(topology: Topology) -> dict[str, Place]:
    """Switches in the topology's order on a circle, the hosts of each outside it."""
    switches = [switch.name for switch in topology.switches]
    hosts: dict[str, list[str]] = {name: [] for name in switches}
    for host in topology.hosts:
        hosts[topology.attachment(host.name).name].append(host.name)
    slots = max(1, sum(max(1, len(found)) for found in hosts.values()))
    outer = max(2.0, slots / (2 * math.pi), len(switches) / (2 * math.pi) + OUTSIDE)
    found: dict[str, Place] = {}
    at = 0
    for name in switches:
        own = hosts[name]
        found[name] = _on_circle(max(1.0, outer - OUTSIDE), (at + (max(1, len(own)) - 1) / 2) / slots, outer)
        for number, of_switch in enumerate(own):
            found[of_switch] = _on_circle(outer, (at + number) / slots, outer)
        at += max(1, len(own))
    return found


def _on_circle(radius: float, turn: float, centre: float) -> Place:
    """turn: from 0 to 1, clockwise from the top."""
    angle = 2 * math.pi * turn
    return centre + radius * math.sin(angle), centre - radius * math.cos(angle)
