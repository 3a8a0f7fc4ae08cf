"""Multicast groups of jobs: their numbers, their addresses, the trees that they follow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address

import networkx as nx

from gradbed.controller.planning.entries import multicast_route
from gradbed.controller.planning.plan import MulticastGroup, SwitchPlan
from gradbed.controller.planning.routing import switch_graph
from gradbed.formats.addresses import MulticastAddress
from gradbed.topo.graph import Topology

LAST_GROUP = 0x7FFF
"""Multicast groups are numbered in 16 bits, of which BMv2 keeps the upper half for clones."""

GROUPS_PER_JOB = 16
"""A job's groups are GROUPS_PER_JOB times its number, and the next ones."""

MAX_JOB = LAST_GROUP // GROUPS_PER_JOB
"""Jobs are numbered from 1, those of all systems together."""


@dataclass(frozen=True)
class MulticastTree:
    """children[switch]: the neighbours (switches and hosts) that get a copy from it, in ascending order of port.

    The root is the switch that the server is attached to. A switch without children is a leaf that the tree
    was asked to pass through.
    """

    root: str
    children: Mapping[str, tuple[str, ...]]

    def edges(self) -> list[tuple[str, str]]:
        return [(parent, child) for parent, children in self.children.items() for child in children]


def multicast_address(group: int) -> MulticastAddress:
    """239.66.x.y, which says the group's number."""
    return MulticastAddress.of(f"239.66.{group >> 8}.{group & 0xFF}")


def multicast_tree(topology: Topology, server: str, receivers: Sequence[str], via: Iterable[str]) -> MulticastTree:
    """A tree from the server to every receiver (host) that passes through every switch of `via`.

    Every node is reached along a shortest path from the server. Among those trees it looks for one of few
    links: tier by tier from the farthest towards the server, each node chooses, of the nodes one step nearer,
    one that the tree needs anyway, else the one that has most switches of `via` on shortest paths to it, else the one
    that most other nodes could share (the greedy set cover).
    """
    via = set(via)
    graph = switch_graph(topology)
    root = topology.attachment(server).name
    order = {switch.name: index for index, switch in enumerate(topology.switches)}
    distance = nx.single_source_shortest_path_length(graph, root)
    behind = _behind(graph, distance, via)
    children: defaultdict[str, list[str]] = defaultdict(list)
    for receiver in receivers:
        children[topology.attachment(receiver).name].append(receiver)
    needed = {root, *via, *children}
    for tier in range(max(distance[switch] for switch in needed), 0, -1):
        orphans = sorted((s for s in needed if distance[s] == tier), key=order.__getitem__)
        candidates = {s: {n for n in graph[s] if distance[n] == tier - 1} for s in orphans}
        while orphans:
            reach = {
                parent: sum(parent in candidates[switch] for switch in orphans)
                for parent in set().union(*(candidates[switch] for switch in orphans))
            }
            parent = min(reach, key=lambda name: (name not in needed, -behind[name], -reach[name], order[name]))
            needed.add(parent)
            children[parent] += [switch for switch in orphans if parent in candidates[switch]]
            orphans = [switch for switch in orphans if parent not in candidates[switch]]
    return MulticastTree(
        root,
        {
            switch: tuple(sorted(children[switch], key=partial(topology.port, switch)))
            for switch in sorted(needed, key=lambda name: (distance[name], order[name]))
        },
    )


def _behind(graph: nx.Graph, distance: Mapping[str, int], via: Iterable[str]) -> Counter[str]:
    """Return for each node how many switches of `via` lie on shortest paths to it from the root, itself included."""
    behind: Counter[str] = Counter()
    for switch in via:
        found = {switch}
        for name in sorted(distance, key=distance.__getitem__):
            if any(n in found and distance[n] == distance[name] - 1 for n in graph[name]):
                found.add(name)
        behind.update(found)
    return behind


def multicast_plan(
    topology: Topology, tree: MulticastTree, group: int, ip: str, program: str
) -> dict[str, SwitchPlan]:
    """Groups and routes that copy packets for `ip` along the tree.

    A switch without children gets neither: what arrives there has done its work and matches no route.
    """
    return {
        switch: SwitchPlan.of(
            program,
            [multicast_route(IPv4Address(ip), group)],
            [MulticastGroup(id=group, ports=tuple(topology.port(switch, child) for child in children))],
        )
        for switch, children in tree.children.items()
        if children
    }
