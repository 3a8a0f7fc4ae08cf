"""Addresses of nodes by number: MACs are locally administered (IEEE 802, bit 0x02 of the first byte)."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Literal

from gradbed.topo.graph import Host, Switch, Tier, Topology

Addressing = Literal["l2", "l3"]

FIRST_HOST = 2
"""Last byte of a subnet's first host; .1 is the gateway."""

MAX_HOSTS_PER_SWITCH = 250
"""Hosts share one /24 with their gateway, and a switch's ports end at 509."""


def host_mac(ip: str) -> str:
    """Return 02:00 and the four bytes of the IPv4 address."""
    return "02:00:" + IPv4Address(ip).packed.hex(":")


def switch_mac(number: int) -> str:
    """Return 02:01:00:00 and the two bytes of the switch's number."""
    return "02:01:00:00:" + number.to_bytes(2, "big").hex(":")


def make_switch(name: str, number: int, tier: Tier) -> Switch:
    return Switch(name=name, number=number, tier=tier, mac=switch_mac(number))


def make_host(name: str, subnet: str, index: int, gateway: Switch) -> Host:
    """Return host number `index` (from 0) below `gateway`; `subnet` is the first three bytes, as in "10.0.0"."""
    ip = f"{subnet}.{FIRST_HOST + index}"
    return Host(
        name=name,
        ip=ip,
        prefix_bits=24,
        mac=host_mac(ip),
        gateway_ip=f"{subnet}.1",
        gateway_mac=gateway.mac,
    )


def host_port_mac(host: Host, port: int) -> str:
    """Port 0 has the host's own; the others 02:40 + port and the four bytes of its address."""
    return host.mac if port == 0 else f"02:{0x40 + port:02x}:" + IPv4Address(host.ip).packed.hex(":")


def port_mac(number: int, port: int) -> str:
    """Return 02:02, the switch's number and the port: for the kernel's interface of a port, in no packet."""
    return "02:02:" + (number.to_bytes(2, "big") + port.to_bytes(2, "big")).hex(":")


def addressed(topology: Topology, addressing: Addressing) -> Topology:
    """Return the same network with the same addresses, for another way to send.

    l2: all hosts are of one subnet and send to each other's MAC addresses; l3: they send to their gateways'.
    """
    if addressing == "l3":
        changes: dict[str, object] = {"on_link": False}
    else:
        numbers = [int(IPv4Address(host.ip)) for host in topology.hosts]
        # The hosts' bits, and room for the subnet's own two addresses.
        differing = max(2, *((number ^ numbers[0]).bit_length() for number in numbers))
        changes = {"on_link": True, "prefix_bits": 32 - min(31, differing)}
    hosts = tuple(host.model_copy(update=changes) for host in topology.hosts)
    return Topology(name=topology.name, hosts=hosts, switches=topology.switches, links=topology.links)
