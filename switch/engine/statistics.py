"""What the data plane counts. All numbers are packets unless the name says otherwise."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.switch.engine import abi

Direction = Literal["in", "out"]
"""Of a port: what arrives at the switch, or what leaves it."""


@dataclass(frozen=True)
class LinkStatistics:
    """One direction of a link.

    `packets` and `bytes` were handed over at the far end, duplicates included. Once nothing is queued or in flight,
    what was offered to the direction is packets - duplicates + losses + queue_drops, exactly; bytes likewise, except
    that a packet dropped by the queue in front of an egress pipeline counts with its length before egress.

    backlogged_bytes left a queue that had packets waiting for at least 10 ms on end, which took backlogged_ns of
    clock time altogether: 8e9 * backlogged_bytes / backlogged_ns is the rate in bit/s that the link achieved when it
    was never out of work. Both are 0 for links without a rate. queued: packets that wait in the queue now.
    in_flight: that are being sent or in flight now, duplicates included. entered_bytes were offered so far, with
    lengths before egress. channel_bytes: handed over at the far end by channel, without duplicates, of a link that
    has several (LinkModel.channels). time_ns: up to which, by the engine's clock, all of this is told. Of PFC, by
    priority: pauses_sent by the far end, pauses_received by the transmitter, and paused_ns, how long it paused.
    """

    device_id: int
    port: int
    direction: Direction
    packets: int
    bytes: int
    queue_drops: int
    queue_drop_bytes: int
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int
    backlogged_bytes: int = 0
    backlogged_ns: int = 0
    queued: int = 0
    in_flight: int = 0
    entered_bytes: int = 0
    channel_bytes: tuple[int, ...] = ()
    time_ns: int = 0
    pauses_sent: tuple[int, ...] = ()
    pauses_received: tuple[int, ...] = ()
    paused_ns: tuple[int, ...] = ()

    @property
    def offered(self) -> int:
        return self.packets - self.duplicates + self.losses + self.queue_drops

    @property
    def offered_bytes(self) -> int:
        return self.bytes - self.duplicate_bytes + self.lost_bytes + self.queue_drop_bytes


@dataclass(frozen=True)
class DeviceStatistics:
    """What became of a switch's packets, other than leaving it through a port.

    received: began ingress for the first time. no_program_drops: arrived before a program was loaded.
    swap_drops: were between ingress and egress when another program was loaded. no_port_drops: left egress for a port
    that does not exist. no_group_drops: sent to a multicast group without replicas. priority_drops: of a priority
    that the switch has no queue for. buffer_drops: longer than 65,553 bytes, or out of memory. host_event_drops:
    packet-ins, digests and log lines that nobody fetched in time. no_entry_drops: of the ingress and egress drops
    those by the action that a table runs when no entry matches. cloned: clones; copied: what multicast
    groups and clone sessions of several ports made besides. packet_ins: went to the controller's port, whether
    anybody listens there or not; packet_outs: came from there. no_session_clones: were not made, since their clone
    session has no ports.

    Once nothing is on its way, every packet is accounted for: those that links brought, packet_outs, cloned and
    copied are those that were offered to links, packet_ins, and dropped (all the drops above but host_event_drops and
    no_entry_drops).
    """

    received: int
    no_program_drops: int
    swap_drops: int
    ingress_drops: int
    egress_drops: int
    no_port_drops: int
    no_group_drops: int
    priority_drops: int
    buffer_drops: int
    host_event_drops: int
    cloned: int
    replicated: int
    resubmitted: int
    recirculated: int
    no_entry_drops: int = 0
    copied: int = 0
    packet_ins: int = 0
    packet_outs: int = 0
    no_session_clones: int = 0


@dataclass(frozen=True)
class InterfaceStatistics:
    """A network interface, as its socket sees it.

    device_id, port, direction: of the link that received frames go to, as LinkStatistics has them. socket_drops:
    dropped by the kernel because the socket's buffer was full. send_errors: refused by the kernel (interface down,
    its queue full); they count as queue_drops of the link. oversize_drops: received, but longer than the interface's
    MTU allowed.
    """

    device_id: int
    port: int
    direction: Direction
    received: int
    sent: int
    socket_drops: int
    send_errors: int
    oversize_drops: int


@dataclass(frozen=True)
class EngineStatistics:
    """live_packets: taken from the pool and not given back: 0 when idle and drained.

    late_ns_total and late_ns_max: how long after its time a link event was worked on, over timers_fired events; a
    machine that is too slow for the rates asked of it shows here. late_counts is the histogram: [0] counts events
    that were late by less than 1 us, [n] by 2^(n-1) to 2^n us, and the last all that were later.
    """

    live_packets: int
    pool_bytes: int
    timers_fired: int
    late_ns_total: int
    late_ns_max: int
    late_counts: tuple[int, ...]


# ---- By class of packets, as asked for: [0] of none ----


Patterns = Sequence[Sequence[tuple[int, int, int]]]
"""Of each class, from 1 on, its words of 16 bits: offset in bytes, mask, value. The first class that fits counts."""
ByClass = tuple[int, ...]


@dataclass(frozen=True)
class LinkClasses:
    """One direction of a link, once nothing is on its way: started + duplicates = losses + delivered + refusals.

    entered, queue_drops: of what comes from outside alone, where entered = queue_drops + started (a queue in front of
    a switch's egress is the switch's). started: transmitted, lost ones included. refusals: by what is behind the
    port."""

    device_id: int
    port: int
    direction: Direction
    entered: ByClass
    queue_drops: ByClass
    started: ByClass
    losses: ByClass
    duplicates: ByClass
    delivered: ByClass
    refusals: ByClass

    @classmethod
    def of(cls, row: ctypes.Structure) -> LinkClasses:
        names = ("entered", "queue_drops", "started", "losses", "duplicates", "delivered", "refusals")
        counts = {name: tuple(getattr(row, name)) for name in names}
        return cls(row.device_id, row.port, "out" if row.outwards else "in", **counts)


@dataclass(frozen=True)
class DeviceClasses:
    """A switch. By the class with which packets came: from_controller; copied: clones and copies; ended: in the
    switch, for any reason, or for want of room in a port's queue. left: passed egress, by that class, and by
    that with which they left; handed: of these, to the controller or to no port, by the latter."""

    from_controller: ByClass
    copied: ByClass
    ended: ByClass
    handed: ByClass
    left: tuple[ByClass, ...]

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
