"""The table entries that the programs of p4src/ share: forwarding and congestion marking."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from gradbed.controller.planning.plan import Lpm, Plan, SwitchPlan, TableEntry
from gradbed.formats.addresses import mac_number
from gradbed.topo.graph import Topology


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


def udp_route(dst_port: int, src_port: int, port: int) -> TableEntry:
    """UDP packets with these two ports leave by `port`; of p4src/forward.p4 alone."""
    return TableEntry(
        table="udp_routes",
        match={"hdr.udp.dst_port": dst_port, "hdr.udp.src_port": src_port},
        action="forward_unchanged",
        params={"port": port},
    )


def congestion_threshold(port: int, packets: int) -> TableEntry:
    """Packets that find `packets` or more waiting for `port` leave with congestion experienced (RFC 3168)."""
    return TableEntry(
        table="congestion_thresholds",
        match={"egress_port": port},
        action="mark_above",
        params={"threshold": packets},
    )


def congestion_slope(port: int, k_min: int, k_max: int, p_max: float) -> TableEntry:
    """Packets that find more than `k_min` waiting for `port` are marked by chance, with a probability that grows to
    `p_max` at `k_max`; those that find that many or more always (DCQCN, SIGCOMM 2015, section 3.1)."""
    return TableEntry(
        table="congestion_thresholds",
        match={"egress_port": port},
        action="mark_between",
        params={"k_min": k_min, "k_max": k_max, "slope": min(int(p_max * 2**32) // (k_max - k_min), 2**32 - 1)},
    )


# ---- Where switches begin to say that they are congested ----


def congestion_plan(
    topology: Topology,
    switches: Iterable[str],
    packets: int,
    program: str,
    *,
    always_packets: int | None = None,
    p_max: float = 1.0,
) -> Plan:
    """Let every port of `switches`, which run `program`, mark packets that find `packets` or more in its queue.

    With always_packets only those that find that many are always marked; the others at random, with up to p_max.
    """

    def entry(port: int) -> TableEntry:
        if always_packets is None or always_packets <= packets:
            return congestion_threshold(port, packets)
        return congestion_slope(port, packets, always_packets, p_max)

    return Plan(
        switches={
            switch: SwitchPlan.of(program, [entry(port) for port in topology.neighbours(switch).values()])
            for switch in switches
        }
    )
