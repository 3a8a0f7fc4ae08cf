"""What links and switches counted by class of packets: [0] those of none (switch/engine/classes.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.topo.graph import Direction

ByClass = tuple[int, ...]
"""Packets."""


def added(rows: Iterable[Sequence[int]]) -> ByClass:
    """By class; () of none."""
    return tuple(map(sum, zip(*rows, strict=True)))


def less(now: ByClass, before: ByClass) -> ByClass:
    return tuple(a - b for a, b in zip(now, before, strict=True))


@dataclass(frozen=True)
class DirectionClasses:
    """One direction of a link. begun: handed to it from outside, by a host or by a switch that another program runs,
    or transmitted to it by a switch of the fabric, whose queue is in front of its egress. dropped: by the queue for
    what comes from outside, or by what is behind the port at the end."""

    begun: ByClass
    duplicates: ByClass
    losses: ByClass
    dropped: ByClass
    delivered: ByClass

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]], *, from_outside: bool) -> DirectionClasses:
        """parts: rows with the fields of gradbed.switch.engine.classes.LinkClasses, one behind the other.
        from_outside: the sender is no switch of the fabric."""
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
    """As gradbed.switch.engine.classes.DeviceClasses."""

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
    """Of a network; empty where nobody counts by class."""

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
