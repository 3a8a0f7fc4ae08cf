"""Packet classes of aggregation, the counters of p4src/aggregation.p4, and the accounts of hosts that follow from
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.conservation.host_links import HostAccount, Tally
from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.ring import RING, RING_PORT, RingFlags
from gradbed.topo.graph import Topology

# ---- Classes of packets, which hosts, links and switches count apart ----


def _gradient(name: str, mask: Flags, value: Flags, *becomes: str) -> PacketClass:
    words = (bits_of(GRADIENT, "flags", DATAGRAM_BYTES, mask, value), *udp_datagram(GRADIENT_PORT))
    return PacketClass(name, words, frozenset(becomes))


def _ring(name: str, value: RingFlags) -> PacketClass:
    return PacketClass(name, (bits_of(RING, "flags", DATAGRAM_BYTES, RingFlags.ACK, value), *udp_datagram(RING_PORT)))


_KINDS = Flags.ACK | Flags.NACK | Flags.PARTIAL

CLASSES = (
    # A switch that adds the last of them sends the sum on in its place.
    _gradient("gradient", _KINDS, Flags(0), "partial sum"),
    _gradient("partial sum", _KINDS, Flags.PARTIAL),
    _gradient("NACK", Flags.ACK | Flags.NACK, Flags.ACK | Flags.NACK),
    _gradient("ACK", Flags.ACK, Flags.ACK),
    _ring("ring ACK", RingFlags.ACK),
    _ring("ring", RingFlags(0)),
)


# ---- Counters ----


EVENTS = (
    "claimed",
    "added",
    "completed",
    "duplicate",
    "collision",
    "stale",
    "overlap",
    "resend_summed",
    "resend_single",
    "released",
    "reclaimed",
    "contention",
    "exhaustion",
    "overflow",
    "repeated",
)
"""Events by index in a job's cells of the counter `events`; p4src/include/aggregation/events.p4 describes each."""

EVENT_CELLS = 16
"""Number of cells of the counter `events` for each job."""
EVENT_JOBS = 64
"""Number of jobs with cells of their own: a job's cells are those of its number modulo this."""


def event_at(index: int) -> tuple[int, str]:
    """Return the job, modulo EVENT_JOBS, and the event that a cell of the counter `events` counts."""
    return index // EVENT_CELLS, EVENTS[index % EVENT_CELLS]


def events_of(counts: Counts, job: int | None = None) -> dict[str, int]:
    """Return the packets of each event, summed over all switches, of one job (its number) or of all."""
    together: Counter[str] = Counter()
    for counters in counts.counters.values():
        for index, tally in counters.get("events", {}).items():
            cell_job, event = event_at(index)
            if job is None or cell_job == job % EVENT_JOBS:
                together[event] += tally.packets
    return dict(together)


def gradients_to(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return the gradients and sums that a host's switch sent to it.

    Legacy switches cannot tell them from ACKs and count zero.
    """
    return _at_port(counts, topology, host, "gradient_out")


def acks_from(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return the ACKs that a host's switch received from it."""
    return _at_port(counts, topology, host, "acknowledgement_in")


def received_from(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return all packets of the system that a host's switch received from it."""
    names = ("port_in",) if _is_legacy(counts, topology, host) else ("gradient_in", "acknowledgement_in")
    return sum((_at_port(counts, topology, host, name) for name in names), Tally())


def sent_to(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return all packets of the system that a host's switch sent to it."""
    names = ("port_out",) if _is_legacy(counts, topology, host) else ("gradient_out", "acknowledgement_out")
    return sum((_at_port(counts, topology, host, name) for name in names), Tally())


def account(
    counts: Counts, topology: Topology, host: str, statistics: Mapping[str, Any], *, by_link: bool
) -> HostAccount:
    """Return the counts at both ends of a host's link.

    Args:
        statistics: final statistics of the host's agent.
        by_link: take the link's own counts for the switch's, as P4 switches count gradient packets alone.
    """
    switch = topology.attachment(host).name
    sent, received = _agent_counted(statistics, "sent"), _agent_counted(statistics, "received")
    made = counts.link_account(host, switch, sent, received, statistics["socket_drops"])
    if by_link:
        return made
    return replace(
        made, switch_received=received_from(counts, topology, host), switch_sent=sent_to(counts, topology, host)
    )


def _agent_counted(statistics: Mapping[str, Any], direction: str) -> Tally:
    kinds = (statistics[f"{kind}_{direction}"] for kind in ("gradient", "acknowledgement"))
    return sum((Tally(kind["frames"], kind["bytes"]) for kind in kinds), Tally())


def _at_port(counts: Counts, topology: Topology, host: str, counter: str) -> Tally:
    switch = topology.attachment(host).name
    return counts.cell(switch, counter, topology.port(switch, host))


def _is_legacy(counts: Counts, topology: Topology, host: str) -> bool:
    return counts.has(topology.attachment(host).name, "port_in")
