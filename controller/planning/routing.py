"""Which ways packets take: shortest paths between all switches on the links that are up, and the IPv4 routes that
follow them to every host.

Where several next hops are equally short, each switch takes for a destination the one over which it sends the
fewest hosts' traffic so far, and among those the one that leads to the destination over the link that the fewest
hosts' traffic to this destination takes: so the workers of a job do not all come to its server over one link.
Destinations are taken in the order of the topology. Deterministic, spreads destinations evenly over the links of a
fat-tree's every tier (a plain "destination index modulo choices" would pick the same core for all destinations that
pass one aggregation switch), and knows nothing of any topology.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv4Network
from typing import TypeVar

import networkx as nx

from gradbed.common.errors import UserError
from gradbed.controller.planning.entries import ipv4_route
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.topo.graph import Host, Link, Topology

# ---- The fewest prefixes ----
#
# Routes to prefixes, by the fewest prefixes that need no longer one to win: halves that go the same way become one.
#
# No address changes its way. In particular those that nobody has stay without a route: a shorter prefix that covered
# them, such as a default, would send their packets from switch to switch until their TTL ends.


Way = TypeVar("Way", bound=Hashable)

_ADDRESS_BITS = 32


def summarised(routes: Mapping[IPv4Network, Way]) -> dict[IPv4Network, Way]:
    """The same way for every address, by as few prefixes as can be where none of them lies in another.

    Ways are compared by ==: ports, next hops, sets of them. The order is that of the routes: a prefix takes the place
    of the first that it stands for. ValueError if one of the prefixes lies in another.
    """
    by_length: defaultdict[int, dict[int, tuple[Way, int]]] = defaultdict(dict)
    for place, (prefix, way) in enumerate(routes.items()):
        by_length[prefix.prefixlen][int(prefix.network_address)] = (way, place)
    _check_disjoint(routes)
    for length in range(_ADDRESS_BITS, 0, -1):
        prefixes, half = by_length[length], 1 << (_ADDRESS_BITS - length)
        for low in [address for address in prefixes if not address & half]:
            found, other = prefixes[low], prefixes.get(low | half)
            if other is None or other[0] != found[0]:
                continue
            del prefixes[low], prefixes[low | half]
            by_length[length - 1][low] = (found[0], min(found[1], other[1]))
    left = [
        (place, IPv4Network((address, length)), way)
        for length, prefixes in by_length.items()
        for address, (way, place) in prefixes.items()
    ]
    return {prefix: way for _, prefix, way in sorted(left, key=lambda each: each[0])}


def _check_disjoint(routes: Mapping[IPv4Network, Way]) -> None:
    before: IPv4Network | None = None
    for prefix in sorted(routes):
        if before is not None and prefix.subnet_of(before):
            raise ValueError(f"{prefix} lies in {before}")
        before = prefix


# ---- The network that is left when links are down ----


LinkName = frozenset[str]
"""The names of a link's two nodes."""


def link_name(link: Link) -> LinkName:
    return frozenset((link.a.node, link.b.node))


def remaining_network(topology: Topology, down: Collection[LinkName]) -> Topology:
    """The same nodes with the links that are up, and of those that are down the first ones without which switches
    could not reach each other, or a host its only switch: packets for what is cut off are lost there, and everything
    else is planned as if it were not there."""
    if not down:
        return topology
    hosts = {host.name for host in topology.hosts}
    left = nx.Graph()
    kept = {link_name(link) for link in topology.links} - set(down)
    left.add_nodes_from(topology.graph)
    # Hosts do not forward: no path between switches runs through one.
    left.add_edges_from(tuple(name) for name in kept if not name & hosts)
    linked = {host for name in kept for host in name & hosts}
    for link in topology.links:
        name = link_name(link)
        host = next(iter(name & hosts), None)
        if name in kept or (host is not None and host in linked):
            continue
        if host is not None:
            linked.add(host)
        elif not nx.has_path(left, *name):
            left.add_edge(*name)
        else:
            continue
        kept.add(name)
    links = tuple(link for link in topology.links if link_name(link) in kept)
    return Topology(name=topology.name, hosts=topology.hosts, switches=topology.switches, links=links)


# ---- Shortest paths and their routes ----


@dataclass(frozen=True)
class Routes:
    """Routes between all pairs of switches. Hosts never forward, so no route runs through one."""

    next_hops: Mapping[str, Mapping[str, str]]
    """next_hops[destination][switch]: the neighbour of the switch on its route to the destination."""
    distances: Mapping[str, Mapping[str, int]]
    """distances[destination][switch]: links between the two switches."""

    def next_hop(self, switch: str, destination: str) -> str:
        return self.next_hops[destination][switch]

    def distance(self, switch: str, destination: str) -> int:
        return self.distances[destination][switch]

    def path(self, switch: str, destination: str) -> tuple[str, ...]:
        """Return the switches from `switch` to `destination`, both included."""
        path = [switch]
        while path[-1] != destination:
            path.append(self.next_hop(path[-1], destination))
        return tuple(path)


def switch_graph(topology: Topology) -> nx.Graph:
    """Return the switches and the links between them.

    Raises:
        UserError: Some cannot reach others.
    """
    graph = nx.Graph(topology.graph.subgraph(switch.name for switch in topology.switches))
    components = sorted(map(sorted, nx.connected_components(graph)), key=len)
    if len(components) > 1:
        apart, rest = components[0], components[-1]
        raise UserError(f"the network is not connected: no path from {apart[0]} to {rest[0]}")
    return graph


def shortest_routes(topology: Topology) -> Routes:
    """Return routes along shortest paths, equal ones spread over the destinations.

    Raises:
        UserError: The switches are not connected.
    """
    graph = switch_graph(topology)
    order = {switch.name: index for index, switch in enumerate(topology.switches)}
    neighbours = {name: sorted(graph[name], key=order.__getitem__) for name in order}
    hosts_at = Counter(topology.attachment(host.name).name for host in topology.hosts)
    # Edge switches first: the traffic of hosts decides, routes towards other switches fill in.
    destinations = sorted(order, key=lambda name: (name not in hosts_at, order[name]))
    load: defaultdict[tuple[str, str], int] = defaultdict(int)
    next_hops: dict[str, dict[str, str]] = {}
    distances: dict[str, dict[str, int]] = {}
    for destination in destinations:
        distance = nx.single_source_shortest_path_length(graph, destination)
        carried = Counter(hosts_at)
        last_hops = _last_hops(neighbours, distance)
        arriving: Counter[str] = Counter()
        hops: dict[str, str] = {}
        # Farthest first, so that a switch knows what it carries for others when it chooses.
        for switch in sorted(distance, key=lambda name: (-distance[name], order[name])):
            if switch == destination:
                continue
            nearer = [n for n in neighbours[switch] if distance[n] == distance[switch] - 1]
            hop = nearer[0]
            if len(nearer) > 1:
                hop = min(
                    nearer, key=lambda n: (load[switch, n], min((arriving[last] for last in last_hops[n]), default=0))
                )
            if hosts_at[switch] and hop != destination:
                arriving[min(last_hops[hop], key=arriving.__getitem__)] += hosts_at[switch]
            hops[switch] = hop
            carried[hop] += carried[switch]
            load[switch, hop] += max(carried[switch] * hosts_at[destination], 1)
        next_hops[destination] = hops
        distances[destination] = dict(distance)
    return Routes(next_hops, distances)


def equal_cost_path(topology: Topology, source: str, destination: str, flow: str) -> tuple[str, ...]:
    """Return a shortest path between two switches, both included, as ECMP would find it.

    Each switch on it chooses among the next hops by a hash of the flow's name, with a seed of its own.
    """
    graph = switch_graph(topology)
    distance = nx.single_source_shortest_path_length(graph, destination)
    path = [source]
    while path[-1] != destination:
        here = path[-1]
        nearer = sorted(name for name in graph[here] if distance[name] < distance[here])
        drawn = blake2b(flow.encode(), key=here.encode(), digest_size=8).digest()
        path.append(nearer[int.from_bytes(drawn, "big") % len(nearer)])
    return tuple(path)


def _last_hops(neighbours: Mapping[str, list[str]], distance: Mapping[str, int]) -> dict[str, list[str]]:
    """Return for each switch the neighbours of the destination over which shortest paths from it arrive."""
    found: dict[str, list[str]] = {}
    for switch in sorted(distance, key=distance.__getitem__):
        if distance[switch] == 1:
            found[switch] = [switch]
        else:
            nearer = (n for n in neighbours[switch] if distance[n] == distance[switch] - 1)
            found[switch] = list(dict.fromkeys(last for n in nearer for last in found[n]))
    return found


def routing_plan(
    topology: Topology,
    routes: Routes,
    programs: Mapping[str, str],
    unrouted_programs: Collection[str] = (),
    unrouted: Collection[str] = (),
) -> Plan:
    """Return the plan with IPv4 routes to every host on every switch.

    A switch has an entry for each of its prefixes (`prefix_routes`). Towards a switch the next destination MAC is
    that switch's, at the edge the host's.

    Args:
        topology: The network.
        routes: Its routes.
        programs: The program of each switch.
        unrouted_programs: Programs without a table ipv4_routes: switches that run them get no routes.
        unrouted: Further switches that get no routes.
    """
    behind = prefixes_behind(topology)
    switches: dict[str, SwitchPlan] = {}
    for switch in topology.switches:
        program = programs[switch.name]
        if program in unrouted_programs or switch.name in unrouted:
            switches[switch.name] = SwitchPlan(program=program)
            continue
        entries = []
        for prefix, hop in prefix_routes(topology, routes, switch.name, behind).items():
            mac = topology.host(hop).mac if topology.is_host(hop) else topology.switch(hop).mac
            entries.append(ipv4_route(prefix, topology.port(switch.name, hop), mac))
        switches[switch.name] = SwitchPlan.of(program, entries)
    return Plan(switches=switches)


def prefix_routes(
    topology: Topology, routes: Routes, switch: str, behind: Mapping[str, Collection[IPv4Network]]
) -> dict[IPv4Network, str]:
    """Return the next hop of each prefix at a switch; `behind` is `prefixes_behind` of the topology.

    The switch's own hosts have a /32 each. A whole subnet behind another switch is one prefix (one /32 for each host
    where a subnet is spread over several switches), and adjacent prefixes with the same next hop are aggregated.
    """
    own = {
        IPv4Network(host.ip): host.name for host in topology.hosts if topology.attachment(host.name).name == switch
    }
    elsewhere = {
        prefix: routes.next_hop(switch, destination)
        for destination, prefixes in behind.items()
        if destination != switch
        for prefix in prefixes
    }
    return own | summarised(elsewhere)


def prefixes_behind(topology: Topology) -> dict[str, list[IPv4Network]]:
    """Return for each switch that has hosts the fewest prefixes that name them and no host of another switch."""
    subnets: defaultdict[IPv4Network, list[tuple[Host, str]]] = defaultdict(list)
    for host in topology.hosts:
        subnet = IPv4Network(f"{host.ip}/{host.prefix_bits}", strict=False)
        subnets[subnet].append((host, topology.attachment(host.name).name))
    behind: defaultdict[str, list[IPv4Network]] = defaultdict(list)
    for subnet, members in subnets.items():
        if len({switch for _, switch in members}) == 1:
            behind[members[0][1]].append(subnet)
        else:
            for host, switch in members:
                behind[switch].append(IPv4Network(host.ip))
    return dict(behind)


# ---- All shortest paths, and seeds by which switches hash flows differently ----


NextHops = tuple[str, ...]
"""Neighbours of a switch that are equally near to a destination, in the order of its ports."""


def equal_cost_next_hops(topology: Topology, destinations: Iterable[str]) -> Mapping[str, Mapping[str, NextHops]]:
    """Return the neighbours of each switch that lie on a shortest path to a destination: [switch][destination].

    Raises:
        UserError: The switches are not connected.
    """
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
    """Return the 32-bit hash seed of one switch, derived from the seed of the network."""
    return int.from_bytes(blake2b(f"{seed} {switch}".encode(), digest_size=4).digest(), "big")
