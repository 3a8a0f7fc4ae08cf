"""Packet classes of NDN, and the routers' counters by their meaning.

The counters are those of p4src/include/ndn/packet_counters.p4 and others.
"""

from __future__ import annotations

from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.conservation.host_links import Tally
from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import ETHER_TYPE, HOP_LIMIT
from gradbed.formats.packet_class import PacketClass, ether_type
from gradbed.topo.graph import Topology

# ---- Classes of packets, which hosts, links and switches count apart ----


def _packet(name: str, kind: int, *becomes: str) -> PacketClass:
    words = ((ETHERNET_BYTES, 0xFF00, kind << 8), ether_type(ETHER_TYPE))
    return PacketClass(name, words, frozenset(becomes))


CLASSES = (
    # A router that holds the Data answers the Interest, one that had it before, or has no way, sends a Nack.
    _packet("Interest", tlv.INTEREST, "Data", "LpPacket"),
    _packet("Data", tlv.DATA),
    _packet("LpPacket", tlv.LP_PACKET, "Interest", "Data"),
)


# ---- Counters ----


KINDS = ("interest", "insertion", "deletion", "data", "push", "acknowledgement", "nack")
_CELLS_A_PORT = 8

DROP_REASONS = (
    "unknown_type", "not_shortest", "truncated", "no_name", "nested_length", "component_too_long",
    "too_many_components", "operation_name", "bad_element", "port_beyond_16", "hop_limit", "no_route", "duplicate",
    "aggregated", "unsolicited", "no_group", "not_upstream", "overtaken", "link_header", "not_ours",
)  # fmt: skip
"""Reasons for which routers drop packets, each with a counter dropped_REASON.

The first nine are malformed packets.
"""

ROUTER_COUNTERS = (
    "subscriptions_made", "subscriptions_ended", "subscription_collisions", "pending_made", "pending_repeated",
    "pending_satisfied", "pending_evicted", "content_misses", "content_kept", "content_evicted", "content_collisions",
)  # fmt: skip


def entering(counts: Counts, topology: Topology, kind: str) -> dict[str, Tally]:
    """Return the packets of a kind that came from each host to its router."""
    return {host.name: _at(counts, topology, host.name, "ndn_in", kind) for host in topology.hosts}


def _at(counts: Counts, topology: Topology, host: str, counter: str, kind: str) -> Tally:
    switch = topology.attachment(host).name
    return counts.cell(switch, counter, topology.port(switch, host) * _CELLS_A_PORT + KINDS.index(kind))


def transmissions(counts: Counts, topology: Topology, kind: str) -> Tally:
    """Return the packets of a kind over all links: those that came from hosts, and those that routers sent."""
    place = KINDS.index(kind)
    left = (
        tally
        for switch in topology.switches
        for cell, tally in counts.counters.get(switch.name, {}).get("ndn_out", {}).items()
        if cell % _CELLS_A_PORT == place
    )
    return sum((*left, *entering(counts, topology, kind).values()), Tally())


def router_count(counts: Counts, router: str, name: str) -> int:
    """Return the packets of a router's counter."""
    return counts.cell(router, name, 0).packets


def router_packets(counts: Counts, router: str, way: str, kind: str) -> int:
    """Return the packets of a kind that came to a router ("in") or left it ("out"), over all ports."""
    place = KINDS.index(kind)
    cells = counts.counters.get(router, {}).get(f"ndn_{way}", {})
    return sum(tally.packets for cell, tally in cells.items() if cell % _CELLS_A_PORT == place)


def departures(counts: Counts, router: str, port: int) -> int:
    """Return the packets of all kinds that left by a port."""
    return sum(counts.cell(router, "ndn_out", port * _CELLS_A_PORT + place).packets for place in range(len(KINDS)))


def hits(counts: Counts, router: str) -> dict[int, int]:
    """Return the Interests that a router's content store answered, by their remaining hop limit."""
    cells = counts.counters.get(router, {}).get("content_hits", {})
    return {hops_left: tally.packets for hops_left, tally in cells.items()}


def hits_by_distance(counts: Counts, topology: Topology) -> dict[int, int]:
    """Return the Interests answered from content stores, by the number of links between consumer and router."""
    found: dict[int, int] = {}
    for switch in topology.switches:
        for hops_left, packets in hits(counts, switch.name).items():
            distance = HOP_LIMIT - hops_left
            found[distance] = found.get(distance, 0) + packets
    return dict(sorted(found.items()))


def drops(counts: Counts, topology: Topology) -> dict[str, int]:
    """Return the packets dropped by all routers together, for each reason that occurred."""
    total = {
        reason: sum(router_count(counts, switch.name, f"dropped_{reason}") for switch in topology.switches)
        for reason in DROP_REASONS
    }
    return {reason: count for reason, count in total.items() if count}
