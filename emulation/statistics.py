"""What a network's links did to packets, and what links and switches counted by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.topo.graph import Direction

# ---- Links ----


@dataclass(frozen=True)
class DirectionStatistics:
    """Counters of one direction of a link since the start."""

    from_node: str
    to_node: str
    packets: int
    """Packets that reached `to_node`, duplicates included."""
    bytes: int
    """Bytes of these packets."""
    queue_drops: int
    queue_drop_bytes: int | None
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int
    backlogged_bytes: int = 0
    """Bytes sent while packets were waiting for the link without a break, for at least 10 ms.

    8e9 * backlogged_bytes / backlogged_ns is the rate in bit/s that the link achieved then. Both are 0 of links
    without a rate.
    """
    backlogged_ns: int = 0
    """Duration of these times."""
    queued: int | None = None
    """Packets that wait now; None: unknown."""
    in_flight: int = 0
    """Packets that are being sent or in flight now."""
    entered_bytes: int = 0
    """Bytes handed to the link so far, with lengths before the switch's egress."""
    channel_bytes: tuple[int, ...] = ()
    """`bytes` by channel, without duplicates, of a link that has several."""
    time_ns: int | None = field(default=None, compare=False)
    """Up to when all of this was counted, by the clock of the engine, in which links keep to their rates."""
    pauses_sent: tuple[int, ...] = ()
    """PFC pauses that `to_node` sent, by priority."""
    pauses_received: tuple[int, ...] = ()
    """PFC pauses that `from_node` received, by priority."""
    paused_ns: tuple[int, ...] = ()
    """How long they paused it, by priority."""
    socket_drops: int = 0
    """Packets from outside that never came to the link: the packet socket in front of it had no room."""
    from_outside: bool = False
    """Whether `from_node` is a host, or a switch that another program runs.

    Its own counters have what the link's queue drops; a switch of gradbed has its queue in front of them.
    """

    @property
    def offered(self) -> int:
        """Number of packets that `from_node` handed to the link, once none is in flight."""
        return self.packets - self.duplicates + self.losses + self.queue_drops + self.socket_drops


@dataclass(frozen=True)
class DataPlaneStatistics:
    """Lateness and losses of the engine of switches and links, since its start."""

    late_ns_total: int
    """Sum of the delays with which link events were handled."""
    late_counts: tuple[int, ...]
    """Histogram of these delays: [0] counts less than 1 us, [n] 2^(n-1) to 2^n us."""
    socket_frames: int
    """Frames from hosts."""
    socket_drops: int
    """Those of them that were lost because a socket's buffer was full."""
    live_packets: int
    """Packets in switches and on links now."""


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
    """Counts by class of one direction of a link."""

    begun: ByClass
    """Handed to it by a host or by a switch that another program runs, or transmitted to it by a switch of the
    engine, whose queue is in front of its egress."""
    duplicates: ByClass
    losses: ByClass
    dropped: ByClass
    """Dropped by the queue for what comes from outside, or by what is behind the port at the end."""
    delivered: ByClass

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]], *, from_outside: bool) -> DirectionClasses:
        """Make the counts of a direction of several parts.

        Args:
            parts: Rows with the fields of gradbed.switch.engine.statistics.LinkClasses, one behind the other.
            from_outside: Whether the sender is no switch of the engine.
        """
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
