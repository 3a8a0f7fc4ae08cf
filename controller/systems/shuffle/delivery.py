"""Delivery of transmissions, and the entries that switches need for it: trees with bit strings, groups, routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from itertools import pairwise

from gradbed.controller.planning.entries import multicast_route
from gradbed.controller.planning.plan import MulticastGroup, Plan, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.shuffle.messages import Delivery, Multicast, ShuffleJob, Unicast
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.controller.systems.shuffle.scheduling.trees import Tree, Trees
from gradbed.topo.graph import Topology, is_hop

PROGRAM = "multicast"
MAX_BIFT_ID = 0xFFFF

Links = tuple[tuple[str, str], ...]
"""Links (from, to) that a packet takes, those inside servers among them."""


def group_address(number: int) -> str:
    """Multicast address number `number` of all shuffles: 239.128.0.0 and the following (RFC 2365)."""
    return str(IPv4Address(0xEF800000 + number))


def route_links(topology: Topology, routes: Routes, sender: str, receiver: str) -> Links:
    """Return the links of IPv4 packets from host to host."""
    switches = routes.path(topology.attachment(sender).name, topology.attachment(receiver).name)
    nodes = (sender, *switches, receiver)
    return tuple(pairwise(nodes))


def hop_count(topology: Topology, links: Links) -> int:
    return sum(is_hop(topology, topology.link(a, b)) for a, b in links)


def tree_links(instance: ShuffleInstance, schedule: Schedule, transmission: Transmission) -> Links:
    """Return the links of a transmission on its tree."""
    receivers = [instance.hosts[worker] for worker, _ in transmission.receivers]
    return schedule.trees[transmission.tree].branches(instance.hosts[transmission.sender], receivers)


def transmission_links(
    topology: Topology, routes: Routes, instance: ShuffleInstance, schedule: Schedule, deliveries: Sequence[Delivery]
) -> list[Links]:
    """Return the links of every transmission."""
    ips = {topology.host(name).ip for name in instance.hosts}
    found = []
    for transmission, delivery in zip(schedule.transmissions, deliveries, strict=True):
        if delivery.dst_ip in ips:
            ((receiver, _),) = transmission.receivers
            found.append(route_links(topology, routes, instance.hosts[transmission.sender], instance.hosts[receiver]))
        else:
            found.append(tree_links(instance, schedule, transmission))
    return found


def choose_deliveries(
    topology: Topology,
    routes: Routes,
    instance: ShuffleInstance,
    schedule: Schedule,
    multicast: Multicast,
    unicast: Unicast,
    first_bift_id: int,
    first_address: int,
) -> tuple[tuple[Delivery, ...], int]:
    """Return how each transmission travels, and how many multicast addresses they take.

    A single receiver's route must take the hops that the scheduler counted, else the packet goes on the tree.
    """
    addresses: dict[tuple[int, int, frozenset[int]], int] = {}
    found = []
    for transmission in schedule.transmissions:
        receivers = frozenset(worker for worker, _ in transmission.receivers)
        if len(receivers) == 1 and (unicast == "routes" or multicast == "groups"):
            receiver = instance.hosts[next(iter(receivers))]
            links = route_links(topology, routes, instance.hosts[transmission.sender], receiver)
            if hop_count(topology, links) == transmission.hops:
                found.append(Delivery(dst_ip=topology.host(receiver).ip))
                continue
        if multicast == "bit-string":
            found.append(Delivery(bift_id=first_bift_id + transmission.tree))
        else:
            key = (transmission.tree, transmission.sender, receivers)
            number = addresses.setdefault(key, first_address + len(addresses))
            found.append(Delivery(dst_ip=group_address(number)))
    return tuple(found), len(addresses)


def shuffle_plan(topology: Topology, job: ShuffleJob) -> Plan:
    """Return what switches hold for a shuffle, beside IPv4 routes. Trees that have lost a link are made anew."""
    builder = _Builder(topology, job.first_group)
    trees = [intact(topology, job.instance, tree) for tree in job.schedule.trees]
    used = {delivery.bift_id for delivery in job.deliveries if delivery.dst_ip is None}
    for number, tree in enumerate(trees):
        if job.first_bift_id + number in used:
            builder.add_tree(job.first_bift_id + number, tree, job.instance.workers)
    groups = {group_address(job.first_address + place) for place in range(job.addresses)}
    for address, transmission in {
        delivery.dst_ip: transmission
        for transmission, delivery in zip(job.schedule.transmissions, job.deliveries, strict=True)
        if delivery.dst_ip in groups
    }.items():
        assert address is not None
        receivers = [job.instance.hosts[worker] for worker, _ in transmission.receivers]
        branches = trees[transmission.tree].branches(job.instance.hosts[transmission.sender], receivers)
        builder.add_group(IPv4Address(address), branches)
    return builder.plan()


def intact(topology: Topology, instance: ShuffleInstance, tree: Tree) -> Tree:
    """Return the tree, or where a link of it is gone another one from the same root to all hosts."""
    if all(topology.graph.has_edge(parent, child) for parent, child in tree.links):
        return tree
    others = [host for host in instance.hosts if host != tree.root]
    return Trees(topology, [tree.root, *others]).trees[0]


def hosts_behind(tree: Tree, hosts: Sequence[str]) -> Mapping[tuple[str, str], int]:
    """Return for each direction (from, to) of a tree's links which of these hosts are behind it, as a set of bits."""
    everybody = sum(1 << number for number, host in enumerate(hosts) if host in tree.nodes)
    below = {host: 1 << number for number, host in enumerate(hosts)}
    found = {}
    for parent, child in reversed(tree.links):  # children's links come after their parent's
        found[parent, child] = below.get(child, 0)
        found[child, parent] = everybody & ~found[parent, child]
        below[parent] = below.get(parent, 0) | found[parent, child]
    return found


class _Builder:
    """Entries and groups of all switches. Groups are numbered downwards from first_group, each set of ports once."""

    def __init__(self, topology: Topology, first_group: int) -> None:
        self._topology = topology
        self._first_group = first_group
        self._entries: defaultdict[str, list[TableEntry]] = defaultdict(list)
        self._groups: defaultdict[str, dict[tuple[int, ...], int]] = defaultdict(dict)

    def _group(self, switch: str, ports: Sequence[int]) -> int:
        groups = self._groups[switch]
        return groups.setdefault(tuple(sorted(ports)), self._first_group - len(groups))

    def add_tree(self, bift_id: int, tree: Tree, hosts: Sequence[str]) -> None:
        ports: defaultdict[str, list[int]] = defaultdict(list)
        for (node, neighbour), behind in hosts_behind(tree, hosts).items():
            if self._topology.is_host(node) or not behind:
                continue
            port = self._topology.port(node, neighbour)
            ports[node].append(port)
            self._entries[node].append(
                TableEntry(
                    table="bift",
                    match={"bift_id": bift_id, "egress_port": port},
                    action="keep",
                    params={"f_bm": behind},
                )
            )
        for switch, own in ports.items():
            self._entries[switch].append(
                TableEntry(
                    table="trees",
                    match={"bift_id": bift_id},
                    action="MulticastIngress.replicate_on_tree.replicate",
                    params={"group": self._group(switch, own)},
                )
            )

    def add_group(self, address: IPv4Address, branches: Links) -> None:
        ports: defaultdict[str, list[int]] = defaultdict(list)
        for node, neighbour in branches:
            if not self._topology.is_host(node):
                ports[node].append(self._topology.port(node, neighbour))
        for switch, own in ports.items():
            self._entries[switch].append(multicast_route(address, self._group(switch, own)))

    def plan(self) -> Plan:
        return Plan(
            switches={
                switch: SwitchPlan.of(
                    PROGRAM,
                    entries,
                    [MulticastGroup(id=number, ports=ports) for ports, number in self._groups[switch].items()],
                )
                for switch, entries in self._entries.items()
            }
        )
