"""What both simulators carry: a permutation of constant-rate UDP flows on a fat-tree, with equal links and paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx

from topo.graph import Host, Topology
from topo.link import LinkModel
from topo.shapes.fat_tree import fat_tree

LINK_RATE_BPS = 1_000_000_000
LINK_DELAY_US = 5
PAYLOAD_BYTES = 1000
FLOW_PAYLOAD_BPS = 200_000_000
PAUSE_NS = PAYLOAD_BYTES * 8 * 1_000_000_000 // FLOW_PAYLOAD_BPS


@dataclass(frozen=True)
class Permutation:
    """Host i sends to host i + n/2 (mod n) of a k-ary fat-tree; every link carries one flow each way at most."""

    k: int

    @cached_property
    def topology(self) -> Topology:
        return fat_tree(self.k, LinkModel(rate_bps=LINK_RATE_BPS, delay_us=LINK_DELAY_US))

    def flows(self) -> list[tuple[Host, Host]]:
        hosts = self.topology.hosts
        return [(host, hosts[(i + len(hosts) // 2) % len(hosts)]) for i, host in enumerate(hosts)]

    @cached_property
    def ports(self) -> dict[tuple[str, str], int]:
        """The port of the first node that leads to the second."""
        ports = {}
        for link in self.topology.links:
            ports[link.a.node, link.b.node] = link.a.port
            ports[link.b.node, link.a.node] = link.b.port
        return ports

    @cached_property
    def edges(self) -> dict[str, str]:
        """The switch that each host hangs on."""
        return {host.name: next(iter(self.topology.graph[host.name])) for host in self.topology.hosts}

    def routes(self) -> dict[str, dict[str, int]]:
        """By switch and host: the port of a shortest path. Upwards, edge switches spread their destinations by their
        place at their edge switch, aggregation switches by that of the edge switch in its pod."""
        graph, half = self.topology.graph, self.k // 2
        between = graph.subgraph([switch.name for switch in self.topology.switches])
        routes: dict[str, dict[str, int]] = {switch.name: {} for switch in self.topology.switches}
        nearer: dict[tuple[str, str], list[int]] = {}
        for edge in dict.fromkeys(self.edges.values()):
            distance = networkx.single_source_shortest_path_length(between, edge)
            for switch in self.topology.switches:
                nearer[switch.name, edge] = sorted(
                    self.ports[switch.name, next_one]
                    for next_one in between[switch.name]
                    if distance[next_one] < distance[switch.name]
                )
        for i, host in enumerate(self.topology.hosts):
            edge = self.edges[host.name]
            for switch in self.topology.switches:
                if switch.name == edge:
                    routes[edge][host.name] = self.ports[edge, host.name]
                else:
                    choice = nearer[switch.name, edge]
                    spread = i if switch.tier == "edge" else i // half
                    routes[switch.name][host.name] = choice[spread % len(choice)]
        return routes
