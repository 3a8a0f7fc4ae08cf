"""All shortest paths between switches, and seeds by which each of them hashes flows in its own way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import networkx as nx

from gradbed.controller.planning.routing import switch_graph
from gradbed.topo.graph import Topology

NextHops = tuple[str, ...]
"""Neighbours of a switch that are equally near to a destination, in the order of its ports."""


def equal_cost_next_hops(topology: Topology, destinations: Iterable[str]) -> Mapping[str, Mapping[str, NextHops]]:
    """[switch][destination]: every neighbour of the switch that lies on a shortest path to that other switch.
    UserError if the switches are not connected."""
    graph = switch_graph(topology)
    neighbours = {
        name: [other for other in topology.neighbours(name) if not topology.is_host(other)] for name in graph
    }
    found: dict[str, dict[str, NextHops]] = {name: {} for name in graph}
    for destination in destinations:
        distance = nx.single_source_shortest_path_length(graph, destination)
        for name, away in distance.items():
            if away:
                found[name][destination] = tuple(n for n in neighbours[name] if distance[n] < away)
    return found


def hash_seed(seed: int, switch: str) -> int:
    """32 bits for one switch of a network whose hashes have that seed."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {switch}".encode(), digest_size=4).digest(), "big")
