"""Counts of the data plane. All numbers are packets unless the name says otherwise."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.switch.engine import abi

Direction = Literal["in", "out"]
"""Of a port: what arrives at the switch, or what leaves it."""
PortNumber = Annotated[int, Field(ge=0, le=511)]
"""A port of v1model: nine bits."""


@dataclass(frozen=True)
class LinkStatistics:
    """Counts of one direction of a link.

    Once nothing is queued or in flight, what was offered to the direction is packets - duplicates + losses +
    queue_drops, exactly. Bytes likewise, except that a packet dropped by the queue in front of an egress pipeline
    counts with its length before egress.
    """

    device_id: int
    port: int
    direction: Direction
    packets: int
    """Packets handed over at the far end, duplicates included."""
    bytes: int
    """Bytes handed over at the far end, duplicates included."""
    queue_drops: int
    queue_drop_bytes: int
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int
    backlogged_bytes: int = 0
    """Bytes that left a queue which had packets waiting for at least 10 ms on end.

    8e9 * backlogged_bytes / backlogged_ns is the rate in bit/s that the link achieved when it was never out of work.
    0 for links without a rate.
    """
    backlogged_ns: int = 0
    """Time that backlogged_bytes took, in ns."""
    queued: int = 0
    """Packets that wait in the queue now."""
    in_flight: int = 0
    """Packets that are being sent or in flight now, duplicates included."""
    entered_bytes: int = 0
    """Bytes offered so far, with lengths before egress."""
    channel_bytes: tuple[int, ...] = ()
    """Bytes handed over at the far end by channel, without duplicates, of a link that has several
    (LinkModel.channels)."""
    time_ns: int = 0
    """Time of the engine's clock up to which all of this counts."""
    pauses_sent: tuple[int, ...] = ()
    """PFC pauses that the far end sent, by priority."""
    pauses_received: tuple[int, ...] = ()
    """PFC pauses that the transmitter received, by priority."""
    paused_ns: tuple[int, ...] = ()
    """Time for which PFC paused the transmitter, by priority."""

    @property
    def offered(self) -> int:
        return self.packets - self.duplicates + self.losses + self.queue_drops

    @property
    def offered_bytes(self) -> int:
        return self.bytes - self.duplicate_bytes + self.lost_bytes + self.queue_drop_bytes


@dataclass(frozen=True)
class DeviceStatistics:
    """Counts of a switch's packets that did not leave through a port.

    Once nothing is on its way, every packet is accounted for: those that links brought, packet_outs, cloned and
    copied are those that were offered to links, packet_ins, and dropped (all the drops below but host_event_drops and
    no_entry_drops).
    """

    received: int
    """Packets that began ingress for the first time."""
    no_program_drops: int
    """Packets that arrived before a program was loaded."""
    swap_drops: int
    """Packets between ingress and egress when another program was loaded."""
    ingress_drops: int
    egress_drops: int
    no_port_drops: int
    """Packets that left egress for a port that does not exist."""
    no_group_drops: int
    """Packets sent to a multicast group without replicas."""
    priority_drops: int
    """Packets of a priority that the switch has no queue for."""
    buffer_drops: int
    """Packets longer than 65,553 bytes, or for which there was no memory."""
    host_event_drops: int
    """Packet-ins, digests and log lines that were not fetched in time."""
    cloned: int
    """Clones."""
    replicated: int
    resubmitted: int
    recirculated: int
    no_entry_drops: int = 0
    """Those of ingress_drops and egress_drops by the action that a table runs when no entry matches."""
    copied: int = 0
    """Further copies that multicast groups and clone sessions of several ports made."""
    packet_ins: int = 0
    """Packets to the controller's port, whether a controller listens there or not."""
    packet_outs: int = 0
    """Packets from the controller's port."""
    no_session_clones: int = 0
    """Clones that were not made, since their clone session has no ports."""


@dataclass(frozen=True)
class InterfaceStatistics:
    """Counts of a network interface, as its socket sees it.

    device_id, port and direction are those of the link that received frames go to, as LinkStatistics has them.
    """

    device_id: int
    port: int
    direction: Direction
    received: int
    sent: int
    socket_drops: int
    """Frames that the kernel dropped because the socket's buffer was full."""
    send_errors: int
    """Frames that the kernel refused (interface down, its queue full); they count as queue_drops of the link."""
    oversize_drops: int
    """Frames received that were longer than the interface's MTU allows."""


@dataclass(frozen=True)
class EngineStatistics:
    """Counts of the engine's packets and events.

    How late events were worked on shows a machine that is too slow for the rates asked of it.
    """

    live_packets: int
    """Packets taken from the pool and not given back; 0 when idle and drained."""
    pool_bytes: int
    timers_fired: int
    late_ns_total: int
    """How long after their times link events were worked on, over timers_fired events, in ns."""
    late_ns_max: int
    """The longest of these, in ns."""
    late_counts: tuple[int, ...]
    """Histogram of these: [0] counts events that were late by less than 1 us, [n] by 2^(n-1) to 2^n us, and the
    last all that were later."""


# ---- By class of packets, as asked for: [0] of none ----


Patterns = Sequence[Sequence[tuple[int, int, int]]]
"""Of each class, from 1 on, its words of 16 bits: offset in bytes, mask, value. The first class that fits counts."""
ByClass = tuple[int, ...]


@dataclass(frozen=True)
class LinkClasses:
    """Packets of one direction of a link by class. At rest, started + duplicates = losses + delivered + refusals."""

    device_id: int
    port: int
    direction: Direction
    entered: ByClass
    """Packets that came from outside the switch.

    Of these, entered = queue_drops + started (a queue in front of a switch's egress is the switch's).
    """
    queue_drops: ByClass
    """Drops of these."""
    started: ByClass
    """Packets transmitted, lost ones included."""
    losses: ByClass
    duplicates: ByClass
    delivered: ByClass
    refusals: ByClass
    """Packets refused by what is behind the port."""

    @classmethod
    def of(cls, row: ctypes.Structure) -> LinkClasses:
        names = ("entered", "queue_drops", "started", "losses", "duplicates", "delivered", "refusals")
        counts = {name: tuple(getattr(row, name)) for name in names}
        return cls(row.device_id, row.port, "out" if row.outwards else "in", **counts)


@dataclass(frozen=True)
class DeviceClasses:
    """Packets of a switch by the class with which they came."""

    from_controller: ByClass
    """Packet-outs."""
    copied: ByClass
    """Clones and copies."""
    ended: ByClass
    """Packets that ended in the switch for any reason, also for lack of room in a port's queue."""
    handed: ByClass
    """Those of `left` that went to the controller or to no port, by the class with which they left."""
    left: tuple[ByClass, ...]
    """Packets that passed egress, by that class and by the one with which they left."""

    @classmethod
    def of(cls, row: abi.DeviceClassesStruct) -> DeviceClasses:
        return cls(
            tuple(row.from_controller),
            tuple(row.copied),
            tuple(row.ended),
            tuple(row.handed),
            tuple(tuple(cells) for cells in row.left),
        )


def pattern_structs(patterns: Patterns) -> ctypes.Array[abi.ClassPatternStruct]:
    """Return patterns as C has them. UserError for too many words."""
    rows = (abi.ClassPatternStruct * len(patterns))()
    for row, words in zip(rows, patterns, strict=True):
        if len(words) > abi.CLASS_WORDS:
            raise UserError(f"a class of packets has {len(words)} words, more than {abi.CLASS_WORDS}")
        row.words = len(words)
        for place, word in enumerate(words):
            row.word[place] = abi.ClassWordStruct(*word)
    return rows
