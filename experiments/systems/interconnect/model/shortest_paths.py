"""Any topology in the model: packets take shortest paths; of several next hops a random one, the least loaded one, or
always that of the controller's IPv4 routes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from gradbed.controller.planning.routing import shortest_routes
from gradbed.experiments.systems.interconnect.model.slots import DELIVERED, Integers, Packets
from gradbed.topo.graph import Topology

TURNS = 8


class ShortestPaths:
    """gradbed.experiments.systems.interconnect.model.slots.Fabric. Queues: hosts' links, the links to hosts, then the
    ports of each switch to others."""

    def __init__(self, topology: Topology, choice: Literal["random", "least-loaded", "routes"] = "random") -> None:
        self._least_loaded = choice == "least-loaded"
        self.hosts = len(topology.hosts)
        self.turns = TURNS if self._least_loaded else 1
        number = {switch.name: place for place, switch in enumerate(topology.switches)}
        count = len(number)
        self._edge = np.array([number[topology.attachment(host.name).name] for host in topology.hosts])
        neighbours: list[list[int]] = [[] for _ in range(count)]
        for link in topology.switch_links:
            a, b = number[link.a.node], number[link.b.node]
            neighbours[a].append(b)
            neighbours[b].append(a)
        self._ports = max(map(len, neighbours), default=1) or 1
        self._neighbour = np.full((count, self._ports), -1)
        for place, others in enumerate(neighbours):
            self._neighbour[place, : len(others)] = others
        self.queues = 2 * self.hosts + count * self._ports
        places, ports = np.nonzero(self._neighbour >= 0)
        ends = self._neighbour[places, ports]
        graph = coo_array((np.ones(len(places)), (places, ends)), shape=(count, count)).tocsr()
        distance = shortest_path(graph, method="D", unweighted=True).astype(np.int16)
        # By switch and destination's switch: a bit for each port on a shortest path.
        self._nearer = np.zeros((count, count), np.int64)
        for port in range(self._ports):
            there = self._neighbour[:, port] >= 0
            nearer = distance[self._neighbour[there, port]] == distance[there] - 1
            self._nearer[there] |= nearer.astype(np.int64) << port
        if choice == "routes":
            for destination, hops in shortest_routes(topology).next_hops.items():
                for switch, hop in hops.items():
                    port = neighbours[number[switch]].index(number[hop])
                    self._nearer[number[switch], number[destination]] = 1 << port

    def route(self, packets: Packets, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        to = np.full(len(ids), DELIVERED, np.int64)
        destination = packets.destination[ids]
        first_port = 2 * self.hosts
        at = queues - first_port
        away = np.flatnonzero((queues < self.hosts) | (queues >= first_port))
        switch = np.where(
            queues[away] < self.hosts,
            self._edge[np.minimum(queues[away], self.hosts - 1)],
            self._neighbour[at[away] // self._ports, at[away] % self._ports],
        )
        home = switch == self._edge[destination[away]]
        to[away[home]] = self.hosts + destination[away[home]]
        rest, switch = away[~home], switch[~home]
        if len(rest):
            ports = np.arange(self._ports)
            usable = self._nearer[switch, self._edge[destination[rest]]][:, None] >> ports & 1 == 1
            # Of the ports on shortest paths the one with the least: a random order, behind the queue's length.
            order = (
                packets.salt[ids[rest], None] * (2 * ports + 1) * 0x9E37_79B9 + packets.links[ids[rest], None]
            ) >> 8
            order &= 0xFFFF
            if self._least_loaded:
                order += waiting[first_port + switch[:, None] * self._ports + ports] << 16
            chosen = np.where(usable, order, np.iinfo(np.int64).max).argmin(axis=1)
            to[rest] = first_port + switch * self._ports + chosen
        return to
