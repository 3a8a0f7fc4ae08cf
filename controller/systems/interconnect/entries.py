"""What a hybrid switch holds (p4src/interconnect.p4), on the links that are up."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from gradbed.controller.planning.equal_cost import hash_seed
from gradbed.controller.planning.plan import Lpm, TableEntry
from gradbed.controller.systems.interconnect.policies import Policy
from gradbed.controller.systems.interconnect.reach import Place, Reach
from gradbed.formats.addresses import mac_number
from gradbed.topo.graph import Topology
from gradbed.topo.shapes.optical_electrical import PLANES, hybrid_name, mesh_port, uplink_port

SUBNET_BITS = 24


def self_entry(
    reach: Reach, place: Place, policy: Policy, per_wavelength: bool, flowlet_us: int, seed: int
) -> TableEntry:
    """Who the switch is, and how it chooses. seed: of the network's; each switch hashes flows with one of its own."""
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


def path_entries(reach: Reach, place: Place) -> Iterator[TableEntry]:
    """The ports of the mesh and of both optical switches; each watches its own."""
    n, (unit, sub_unit) = reach.n, place
    for other in range(n):
        if other != sub_unit:
            yield _way("mesh_ways", "sub_unit", other, "mesh", mesh_port(n, sub_unit, other), reach, (unit, other))
    for wavelength in range(1, n):
        far = (unit + wavelength) % n, sub_unit
        for plane, word in zip(range(PLANES), ("first", "second"), strict=True):
            port = uplink_port(n, plane)
            yield _way(f"{word}_lights", "wavelength", wavelength, f"{word}_light", port, reach, far)


def _way(table: str, field: str, value: int, action: str, port: int, reach: Reach, far: Place) -> TableEntry:
    return TableEntry(
        table=table,
        match={field: value},
        action=action,
        params={"port": port, "next": _mac(reach.topology, far)},
        watch_port=port,
    )


def destination_entries(reach: Reach, place: Place) -> Iterator[TableEntry]:
    """The switch's own hosts, and the subnets of all other hybrid switches."""
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


def _towards(reach: Reach, place: Place, neighbour: Place, mac: str) -> tuple[int, str, int]:
    """(port, MAC, wavelength) to a switch of the unit or of the same number in another."""
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


def _mac(topology: Topology, place: Place) -> int:
    return mac_number(topology.switch(hybrid_name(*place)).mac)
