"""Presentation of a topology: its tiers and links in words, and the positions of its nodes in drawings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel

# ---- In words ----


HOSTS = "hosts"


def describe_link(model: LinkModel) -> str:
    """Return what a link does, in words: "100 Mbit/s, 50 us, queues of 1000 packets"."""
    words = ["unlimited" if model.rate_bps is None else f"{model.rate_bps / 1e6:g} Mbit/s", f"{model.delay_us} us"]
    words += [f"{name} {value:g}" for name, value in (("loss", model.loss), ("jitter us", model.jitter_us)) if value]
    words.append(f"queues of {model.queue_packets} packets")
    words += [f"PFC from {model.pfc_xoff_bytes} to {model.pfc_xon_bytes} bytes"] if model.pfc_xoff_bytes else []
    return ", ".join(words)


def describe_tiers(topology: Topology) -> str:
    """Return the tiers from the hosts on with their links: "16 hosts --16-- 8 edge --16-- 8 aggregation".

    Links that are not on this way follow: "; 9 hybrid --18-- 3 optical".
    """
    tiers = {switch.name: switch.tier for switch in topology.switches}
    nodes = Counter([HOSTS] * len(topology.hosts) + list(tiers.values()))
    links = Counter(
        tuple(sorted((tiers.get(link.a.node, HOSTS), tiers.get(link.b.node, HOSTS)))) for link in topology.links
    )
    named = {tier: f"{count} {tier}" for tier, count in nodes.items()}
    parts = [named.get(HOSTS, "no hosts")]
    at, left = HOSTS, dict(links)
    while way := next((pair for pair in left if at in pair and pair[0] != pair[1]), None):
        count = left.pop(way)
        at = way[1] if way[0] == at else way[0]
        parts.append(f"{count}-- {named[at]}")
    more = [f"{named[a]} --{count}-- {'each other' if a == b else named[b]}" for (a, b), count in left.items()]
    return "; ".join([" --".join(parts), *more])


# ---- Positions of nodes: hosts below their switches, or, where switches have no tiers, in a ring ----


Position = tuple[float, float]

RING_SHARE = 0.5
"""From which share of the links between switches on that join switches of one height, such as in a torus, these are
put in a ring."""
OUTSIDE = 1.3
"""Hosts of a ring, seen from their switches."""


def heights(topology: Topology) -> Mapping[str, int]:
    """Return how many links each node is from the nearest host; 0 for what none can reach."""
    import networkx  # not for those who only describe a topology

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
    """Return whether the switches are better drawn in a ring than in rows."""
    of = heights(topology)
    links = topology.switch_links
    level = sum(of[link.a.node] == of[link.b.node] for link in links)
    return len(topology.switches) > 2 and level > RING_SHARE * len(links)


def node_positions(topology: Topology) -> dict[str, Position]:
    """Return x and y of every node, from 0 on, in units of the distance between neighbours; y grows downwards."""
    return _ring(topology) if is_ring(topology) else _tiers(topology)


def _tiers(topology: Topology) -> dict[str, Position]:
    levels = rows(topology)
    width = max(map(len, levels), default=0)
    step = max(1.6, width / 7)
    return {
        name: ((number + 0.5) * width / len(row) - 0.5, step * (len(levels) - 1 - level))
        for level, row in enumerate(levels)
        for number, name in enumerate(row)
    }


def _ring(topology: Topology) -> dict[str, Position]:
    """Switches in the topology's order on a circle, the hosts of each outside it."""
    switches = [switch.name for switch in topology.switches]
    hosts: dict[str, list[str]] = {name: [] for name in switches}
    for host in topology.hosts:
        hosts[topology.attachment(host.name).name].append(host.name)
    slots = max(1, sum(max(1, len(found)) for found in hosts.values()))
    outer = max(2.0, slots / (2 * math.pi), len(switches) / (2 * math.pi) + OUTSIDE)
    found: dict[str, Position] = {}
    at = 0
    for name in switches:
        own = hosts[name]
        found[name] = _on_circle(max(1.0, outer - OUTSIDE), (at + (max(1, len(own)) - 1) / 2) / slots, outer)
        for number, of_switch in enumerate(own):
            found[of_switch] = _on_circle(outer, (at + number) / slots, outer)
        at += max(1, len(own))
    return found


def _on_circle(radius: float, turn: float, centre: float) -> Position:
    """turn: from 0 to 1, clockwise from the top."""
    angle = 2 * math.pi * turn
    return centre + radius * math.sin(angle), centre - radius * math.cos(angle)
