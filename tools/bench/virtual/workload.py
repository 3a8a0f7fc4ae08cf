"""The traffic that all simulators carry: a permutation of constant-rate UDP flows on a fat-tree of equal links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network

from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Host, Topology
from gradbed.topo.link import LinkModel

LINK_RATE_BPS = 1_000_000_000
PAYLOAD_BYTES = 1000
FLOW_PAYLOAD_BPS = 200_000_000
PAUSE_NS = PAYLOAD_BYTES * 8 * 1_000_000_000 // FLOW_PAYLOAD_BPS


@dataclass(frozen=True)
class Permutation:
    """Host x of edge switch e in pod p of a k-ary fat-tree sends to host e of edge switch x in pod p + x + 1.

    With the routes below every link carries one flow each way at most, and every flow takes six links. Pods count
    from 0, modulo k.
    """

    k: int
    delay_us: int = 5
    """Of each link."""

    @cached_property
    def topology(self) -> Topology:
        """The fat-tree."""
        return fat_tree(self.k, LinkModel(rate_bps=LINK_RATE_BPS, delay_us=self.delay_us))

    @property
    def half(self) -> int:
        """Half of k: hosts of an edge switch, edge switches of a pod."""
        return self.k // 2

    def flows(self) -> list[tuple[Host, Host]]:
        """Return the sender and the receiver of each flow."""
        hosts, half = self.topology.hosts, self.half
        found = []
        for i, host in enumerate(hosts):
            pod, edge, x = self._place(i)
            to_pod = (pod + x + 1) % self.k
            found.append((host, hosts[(to_pod * half + x) * half + edge]))
        return found

    def _place(self, host: int) -> tuple[int, int, int]:
        """Return pod, edge switch in it, and place there of the host with this number, all from 0."""
        return host // self.half**2, host // self.half % self.half, host % self.half

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
        """The switch to which each host is attached."""
        return {host.name: next(iter(self.topology.graph[host.name])) for host in self.topology.hosts}

    def routes(self) -> Iterator[tuple[str, Mapping[IPv4Network, int]]]:
        """Yield the port of each prefix for each switch: at most 2 k of them, by the addresses of fat-trees.

        Downwards there is one way. Upwards, edge switch e of pod p takes uplink P + p + e (mod k/2) to pod P, and the
        pod's aggregation switches take uplink P + p: so a pod's traffic leaves over all links, and arrives over all.
        """
        for number, switch in enumerate(self.topology.switches):
            if switch.tier == "core":
                yield switch.name, {_pod(pod): 1 + pod for pod in range(self.k)}
                continue
            # Cores come first, then the aggregation switches of all pods, then the edge switches.
            pod, place = divmod((number - self.half**2) % (self.k * self.half), self.half)
            spread = pod + (place if switch.tier == "edge" else 0)
            routes = {
                _pod(other): 1 + self.half + (other + spread) % self.half for other in range(self.k) if other != pod
            }
            for edge in range(self.half):
                if switch.tier == "aggregation":
                    routes[_edge(pod, edge)] = 1 + edge
                elif edge != place:
                    routes[_edge(pod, edge)] = 1 + self.half + (edge + place) % self.half
            if switch.tier == "edge":
                first = (pod * self.half + place) * self.half
                for x, host in enumerate(self.topology.hosts[first : first + self.half]):
                    routes[IPv4Network(host.ip)] = 1 + x
            yield switch.name, routes

    def host_routes(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield the same by host, for simulators without prefixes."""
        hosts = [(_pod_and_edge(host), host.name, IPv4Network(host.ip)) for host in self.topology.hosts]
        for switch, routes in self.routes():
            found = {}
            for (pod, edge), name, own in hosts:
                longest = next(prefix for prefix in (own, edge, pod) if prefix in routes)
                found[name] = routes[longest]
            yield switch, found


def _pod(pod: int) -> IPv4Network:
    return IPv4Network(((10 << 24) + (pod << 16), 16))


def _edge(pod: int, edge: int) -> IPv4Network:
    return IPv4Network(((10 << 24) + (pod << 16) + (edge << 8), 24))


def _pod_and_edge(host: Host) -> tuple[IPv4Network, IPv4Network]:
    return IPv4Network(f"{host.ip}/16", strict=False), IPv4Network(f"{host.ip}/24", strict=False)
