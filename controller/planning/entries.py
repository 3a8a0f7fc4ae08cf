"""The table entries of p4src/aggregation.p4 and of the routers that share its forwarding."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from controller.planning.plan import Lpm, TableEntry
from controller.planning.slots import SlotPolicy, SlotRange

AGGREGATION_PROGRAM = "aggregation"

RECLAIM_DISTANCE = 4096
"""A fragment this much older than another of its job has been acknowledged: workers have fewer in flight. A slot that
still holds it is given to the newer one; were its ACK only late, workers would resend and the server would sum."""


def mac_number(mac: str) -> int:
    """The 48-bit number of "02:00:00:00:00:01"."""
    return int(mac.replace(":", ""), 16)


def mac_text(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")


def ipv4_route(prefix: IPv4Network, port: int, dst_mac: str) -> TableEntry:
    """Packets for `prefix` leave by `port` with dst_mac as their next destination MAC."""
    return TableEntry(
        table="ipv4_routes",
        match={
            "hdr.ipv4.dst_addr": Lpm(value=int(prefix.network_address), prefix_bits=prefix.prefixlen),
        },
        action="forward",
        params={"port": port, "dst_mac": mac_number(dst_mac)},
    )


def multicast_route(address: IPv4Address, group: int) -> TableEntry:
    """Packets for the multicast `address` are copied to the ports of `group`."""
    return TableEntry(
        table="multicast_routes",
        match={"hdr.ipv4.dst_addr": int(address)},
        action="replicate",
        params={"group": group},
    )


def designated_route(switch_number: int, port: int) -> TableEntry:
    """Gradient packets whose designated switch is `switch_number` leave by `port`."""
    return TableEntry(
        table="designated_routes",
        match={"hdr.gradient.switch_number": switch_number},
        action="towards_designated",
        params={"port": port},
    )


def aggregation_role(job: int, switch_number: int, policy: SlotPolicy, slots: SlotRange) -> TableEntry:
    """The switch that bears `switch_number` sums the gradients of `job` that name it, in these slots of its own."""
    # With a static range no worker is further ahead than the range is long.
    distance = slots.slots if policy == "static" else RECLAIM_DISTANCE
    return TableEntry(
        table="roles",
        match={"hdr.gradient.job": job},
        action="aggregate_indexed" if policy == "static" else "aggregate_hashed",
        params={
            "switch_number": switch_number,
            "first_slot": slots.first_slot,
            "slots": slots.slots,
            "reclaim_distance": distance,
        },
    )


def congestion_threshold(port: int, packets: int) -> TableEntry:
    """Packets that find `packets` or more waiting for `port` leave with congestion experienced (RFC 3168)."""
    return TableEntry(
        table="congestion_thresholds",
        match={"egress_port": port},
        action="mark_above",
        params={"threshold": packets},
    )
