"""Paths between hybrid switches on the links that are up, and the entries that the switches hold for them.

Loads choose among the usable paths alone. A path is usable if all of its links are up, to the end, so a packet on one
never arrives at a switch without a next hop. Where no path is left, a packet goes to a neighbour nearer to the
destination (in mesh links and light paths), which has a usable path or is on such a detour itself, so there are no
loops. Hybrid switches run p4src/interconnect.p4; optical switches run p4src/optical.p4, or OpenFlow flows that do the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from ipaddress import IPv4Address
from itertools import product
from typing import Literal, get_args

import networkx as nx

from gradbed.controller.planning.legacy import FORWARD_PROGRAM
from gradbed.controller.planning.plan import Flow, Lpm, Output, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import hash_seed
from gradbed.formats.addresses import mac_number
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import PLANES, hybrid_name, mesh_port, optical_name, size_of, uplink_port

SwitchPosition = tuple[int, int]
"""(unit, sub-unit) of a hybrid switch."""

MESH_FIRST = 1 << PLANES
"""Of `usable`, as in p4src/include/interconnect/ways.p4: bit p is plane p with light first, this one the
mesh first."""


@dataclass(frozen=True)
class Reachability:
    """Reachability in one network; `topology` has the links that are up."""

    topology: Topology

    @cached_property
    def n(self) -> int:
        return size_of(self.topology)

    @property
    def places(self) -> Iterator[SwitchPosition]:
        return product(range(self.n), range(self.n))

    def usable(self, here: SwitchPosition, there: SwitchPosition) -> int | None:
        """Return the ways for packets from `here` to another hybrid switch, in the bits of interconnect/ways.p4.

        None of its bits is the mesh link of the unit. None: none is up.
        """
        (unit, sub_unit), (to_unit, to_sub_unit) = here, there
        if unit == to_unit:
            return 0 if self._mesh(here, there) else None
        found = 0
        corner = to_unit, sub_unit
        for plane in range(PLANES):
            if self.light(plane, here, corner) and (corner == there or self._mesh(corner, there)):
                found |= 1 << plane
        corner = unit, to_sub_unit
        if corner != here and self._mesh(here, corner) and self._planes(corner, there):
            found |= MESH_FIRST
        return found or None

    def detour(self, here: SwitchPosition, there: SwitchPosition) -> SwitchPosition | None:
        """Return the neighbour to send to where no way is usable; None: `there` is cut off."""
        distances = self._distances.get(there, {})
        nearer = [
            other for other in sorted(self._graph[here]) if distances.get(other, here) == distances.get(here, -1) - 1
        ]
        return nearer[0] if nearer else None

    def light(self, plane: int, here: SwitchPosition, there: SwitchPosition) -> bool:
        """Return whether the light path by that plane is up, between switches of one sub-unit number in two units."""
        optical = optical_name(here[1] + self.n * plane)
        return all((hybrid_name(*end), optical) in self._up for end in (here, there))

    def _planes(self, here: SwitchPosition, there: SwitchPosition) -> list[int]:
        return [plane for plane in range(PLANES) if self.light(plane, here, there)]

    def _mesh(self, here: SwitchPosition, there: SwitchPosition) -> bool:
        return (hybrid_name(*here), hybrid_name(*there)) in self._up

    @cached_property
    def _up(self) -> frozenset[tuple[str, str]]:
        ends = [(link.a.node, link.b.node) for link in self.topology.switch_links]
        return frozenset((*ends, *((b, a) for a, b in ends)))

    @cached_property
    def _graph(self) -> nx.Graph:
        """Hybrid switches that a mesh link or a light path joins."""
        graph: nx.Graph = nx.Graph()
        graph.add_nodes_from(self.places)
        for here, there in product(self.places, repeat=2):
            same_unit, same_sub_unit = here[0] == there[0], here[1] == there[1]
            if here < there and (
                (same_unit and self._mesh(here, there)) or (same_sub_unit and self._planes(here, there))
            ):
                graph.add_edge(here, there)
        return graph

    @cached_property
    def _distances(self) -> Mapping[SwitchPosition, Mapping[SwitchPosition, int]]:
        return dict(nx.all_pairs_shortest_path_length(self._graph))


# ---- Routing policies: two rules for p4src/include/interconnect/choose_path.p4 ----

PolicyName = Literal["least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"]


class Rule(IntEnum):
    """Rules that choose between two usable paths (choose_path.p4)."""

    LEAST_LOADED = 0
    FIRST = 1
    RANDOM = 2
    FLOW_HASH = 3


@dataclass(frozen=True)
class RoutingPolicy:
    """The two decisions of a hybrid switch."""

    plane: Rule
    """Rule that chooses between the two optical switches."""
    order: Rule
    """Rule that chooses between the mesh first and light first."""


POLICIES: Mapping[PolicyName, RoutingPolicy] = {
    "least-loaded": RoutingPolicy(Rule.LEAST_LOADED, Rule.LEAST_LOADED),
    "random-plane": RoutingPolicy(Rule.RANDOM, Rule.LEAST_LOADED),
    "fixed-plane": RoutingPolicy(Rule.FIRST, Rule.LEAST_LOADED),
    "mesh-first": RoutingPolicy(Rule.LEAST_LOADED, Rule.FIRST),
    "ecmp": RoutingPolicy(Rule.FLOW_HASH, Rule.FLOW_HASH),
}
"""least-loaded is the source's; the others have one of its two decisions made otherwise, ecmp both."""

assert set(POLICIES) == set(get_args(PolicyName))


# ---- Hybrid switches ----


SUBNET_BITS = 24


def self_entry(
    reach: Reachability,
    place: SwitchPosition,
    policy: RoutingPolicy,
    per_wavelength: bool,
    flowlet_us: int,
    seed: int,
) -> TableEntry:
    """Return the entry of the switch's own number and its policy.

    seed: of the network; each switch hashes flows with one of its own.
    """
    unit, sub_unit = place
    return TableEntry(
        table="self",
        match={"hdr.ethernet.dst_addr": _mac(reach.topology, place)},
        action="i_am",
        params={
            "units": reach.n,
            "unit": unit,
            "sub_unit": sub_unit,
            "plane_rule": policy.plane,
            "order_rule": policy.order,
            "per_wavelength": int(per_wavelength),
            "flowlet_us": flowlet_us,
            "hash_seed": hash_seed(seed, hybrid_name(*place)),
        },
    )


def path_entries(reach: Reachability, place: SwitchPosition) -> Iterator[TableEntry]:
    """Yield the ports of the mesh and of both optical switches; each watches its own."""
    n, (unit, sub_unit) = reach.n, place
    for other in range(n):
        if other != sub_unit:
            yield _way("mesh_ways", "sub_unit", other, "mesh", mesh_port(n, sub_unit, other), reach, (unit, other))
    for wavelength in range(1, n):
        far = (unit + wavelength) % n, sub_unit
        for plane, word in zip(range(PLANES), ("first", "second"), strict=True):
            port = uplink_port(n, plane)
            yield _way(f"{word}_lights", "wavelength", wavelength, f"{word}_light", port, reach, far)


def _way(
    table: str, field: str, value: int, action: str, port: int, reach: Reachability, far: SwitchPosition
) -> TableEntry:
    return TableEntry(
        table=table,
        match={field: value},
        action=action,
        params={"port": port, "next": _mac(reach.topology, far)},
        watch_port=port,
    )


def destination_entries(reach: Reachability, place: SwitchPosition) -> Iterator[TableEntry]:
    """Yield the entries for the switch's own hosts, and for the subnets of all other hybrid switches."""
    topology, name = reach.topology, hybrid_name(*place)
    hosts = {topology.attachment(host.name).name: host for host in reversed(topology.hosts)}
    for host in topology.hosts:
        if topology.attachment(host.name).name == name:
            yield _destination(int(IPv4Address(host.ip)), 32, *_straight(topology.port(name, host.name), host.mac, 0))
    for other in reach.places:
        if other == place:
            continue
        subnet = int(IPv4Address(hosts[hybrid_name(*other)].ip)) >> 8 << 8
        usable = reach.usable(place, other)
        if usable is not None:
            params = {"unit": other[0], "sub_unit": other[1], "usable": usable}
            yield _destination(subnet, SUBNET_BITS, "at", params)
        elif (neighbour := reach.detour(place, other)) is not None:
            mac = topology.switch(hybrid_name(*neighbour)).mac
            yield _destination(subnet, SUBNET_BITS, *_straight(*_towards(reach, place, neighbour, mac)))


def _towards(reach: Reachability, place: SwitchPosition, neighbour: SwitchPosition, mac: str) -> tuple[int, str, int]:
    """Return (port, MAC, wavelength) to a switch of the unit or of the same number in another."""
    n, (unit, sub_unit) = reach.n, place
    if neighbour[0] == unit:
        return mesh_port(n, sub_unit, neighbour[1]), mac, 0
    plane = next(plane for plane in range(PLANES) if reach.light(plane, place, neighbour))
    return uplink_port(n, plane), mac, (neighbour[0] - unit) % n


def _straight(port: int, mac: str, wavelength: int) -> tuple[str, dict[str, int]]:
    return "straight", {"port": port, "next": mac_number(mac), "by_wavelength": wavelength}


def _destination(address: int, bits: int, action: str, params: dict[str, int]) -> TableEntry:
    match = {"hdr.ipv4.dst_addr": Lpm(value=address, prefix_bits=bits)}
    return TableEntry(table="destinations", match=match, action=action, params=params)


def _mac(topology: Topology, place: SwitchPosition) -> int:
    return mac_number(topology.switch(hybrid_name(*place)).mac)


# ---- Optical switches: flows that do what p4src/optical.p4 does, and nothing else ----


VLAN_PRESENT = 0x1000
"""OFPVID_PRESENT (OpenFlow 1.3.5, section 7.2.3.7): the field vlan_vid is this and the identifier."""

TO_IN_PORT = 0xFFFF_FFF8
"""OFPP_IN_PORT: a switch sends nothing back by the port's own number."""

PRIORITY = 1000


def crossbar(units: int) -> SwitchPlan:
    """Light of wavelength w (a VLAN identifier) that comes in by fibre i leaves by fibre (i + w) mod units. Fibres
    are ports, counted from 1. What has no wavelength, or one that there is not, matches no flow and is dropped."""

    def flow(fibre: int, wavelength: int) -> Flow:
        out = (fibre + wavelength) % units
        return Flow(
            priority=PRIORITY,
            match={"in_port": fibre + 1, "vlan_vid": VLAN_PRESENT | wavelength},
            actions=(Output(output=TO_IN_PORT if out == fibre else out + 1),),
        )

    flows = (flow(fibre, wavelength) for fibre, wavelength in product(range(units), repeat=2))
    return SwitchPlan.of(FORWARD_PROGRAM, flows=flows, kind="openflow")
