"""What a network's links did to packets, and what links and switches counted by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.topo.graph import Direction

# ---- Links ----


@dataclass(frozen=True)
class DirectionStatistics:
    """What one direction of a link did to packets since the start.

    `packets` and `bytes` reached `to_node`, duplicates included. `queue_drop_bytes` is None where nobody counted
    them (BMv2). 8e9 * backlogged_bytes / backlogged_ns is the rate in bit/s that the link achieved while packets were
    waiting for it without a break (at least 10 ms); both are 0 where nobody measures that (BMv2, links without a
    rate). queued: packets that wait now (None where nobody tells: BMv2). in_flight: being sent or in flight now;
    entered_bytes: handed to the link so far, with lengths before the switch's egress; channel_bytes: `bytes` by
    channel, without duplicates, of a link that has several; time_ns: up to which all of this is told, by the clock of
    the engine that counted it, in which links keep to their rates. None: nobody tells these four (BMv2). Of PFC, by
    priority: pauses_sent by `to_node`, pauses_received by `from_node`, paused_ns: how long it paused.
    socket_drops: packets from a host, or from a switch that another program runs, which the packet socket in front of
    the link had no room for; they never came to the link. from_outside: `from_node` is such a host or switch, whose
    own counters have what the link's queue drops; a switch of gradbed has its queue in front of them.
    """

    from_node: str
    to_node: str
    packets: int
    bytes: int
    queue_drops: int
    queue_drop_bytes: int | None
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int
    backlogged_bytes: int = 0
    backlogged_ns: int = 0
    queued: int | None = None
    in_flight: int = 0
    entered_bytes: int = 0
    channel_bytes: tuple[int, ...] = ()
    time_ns: int | None = field(default=None, compare=False)
    pauses_sent: tuple[int, ...] = ()
    pauses_received: tuple[int, ...] = ()
    paused_ns: tuple[int, ...] = ()
    socket_drops: int = 0
    from_outside: bool = False

    @property
    def offered(self) -> int:
        """Packets that `from_node` handed to the link, once none is on its way any more."""
        return self.packets - self.duplicates + self.losses + self.queue_drops + self.socket_drops


@dataclass(frozen=True)
class DataPlaneStatistics:
    """How well the process that runs switches and links kept up, since its start.

    late_counts: link events by how late they were worked on: [0] by less than 1 us, [n] by 2^(n-1) to 2^n us.
    socket_drops of socket_frames frames from hosts were lost for want of buffer. live_packets: in switches and on
    links now.
    """

    late_ns_total: int
    late_counts: tuple[int, ...]
    socket_frames: int
    socket_drops: int
    live_packets: int


# ---- By class of packets: [0] those of none (switch/engine/statistics.py) ----


ByClass = tuple[int, ...]
"""Packets."""


def added(rows: Iterable[Sequence[int]]) -> ByClass:
    """Return the sums by class; () of none."""
    return tuple(map(sum, zip(*rows, strict=True)))


def less(now: ByClass, before: ByClass) -> ByClass:
    return tuple(a - b for a, b in zip(now, before, strict=True))


@dataclass(frozen=True)
class DirectionClasses:
    """One direction of a link. begun: handed to it from outside, by a host or by a switch that another program runs,
    or transmitted to it by a switch of the engine, whose queue is in front of its egress. dropped: by the queue for
    what comes from outside, or by what is behind the port at the end."""

    begun: ByClass
    duplicates: ByClass
    losses: ByClass
    dropped: ByClass
    delivered: ByClass

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]], *, from_outside: bool) -> DirectionClasses:
        """parts: rows with the fields of gradbed.switch.engine.statistics.LinkClasses, one behind the other.
        from_outside: the sender is no switch of the engine."""
        first, last = parts[0], parts[-1]
        return cls(
            tuple(first["entered" if from_outside else "started"]),
            added(row["duplicates"] for row in parts),
            added(row["losses"] for row in parts),
            added(row[name] for row in parts for name in ("queue_drops", "refusals")),
            tuple(last["delivered"]),
        )

    def __sub__(self, other: DirectionClasses) -> DirectionClasses:
        return DirectionClasses(*map(less, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class SwitchClasses:
    """The counts by class of a switch, as in gradbed.switch.engine.statistics.DeviceClasses."""

    left: tuple[ByClass, ...]
    from_controller: ByClass
    copied: ByClass
    ended: ByClass
    handed: ByClass

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SwitchClasses:
        names = ("from_controller", "copied", "ended", "handed")
        return cls(tuple(map(tuple, row["left"])), *(tuple(row[name]) for name in names))

    def __sub__(self, other: SwitchClasses) -> SwitchClasses:
        names = ("from_controller", "copied", "ended", "handed")
        return SwitchClasses(
            tuple(map(less, self.left, other.left)),
            *(less(getattr(self, name), getattr(other, name)) for name in names),
        )


@dataclass(frozen=True)
class ClassCounts:
    """The counts by class of a network; empty where nothing counts by class."""

    links: Mapping[Direction, DirectionClasses] = field(default_factory=dict)
    switches: Mapping[str, SwitchClasses] = field(default_factory=dict)

    def since(self, before: ClassCounts) -> ClassCounts:
        return ClassCounts(
            {link: now - before.links[link] if link in before.links else now for link, now in self.links.items()},
            {
                name: now - before.switches[name] if name in before.switches else now
                for name, now in self.switches.items()
            },
        )
