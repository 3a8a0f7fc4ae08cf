"""What links and switches count by class of packets, as asked for. All numbers are packets by class: [0] of none."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.switch.engine import abi
from gradbed.switch.engine.statistics import Direction

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
    """As C has them. UserError for too many words."""
    rows = (abi.ClassPatternStruct * len(patterns))()
    for row, words in zip(rows, patterns, strict=True):
        if len(words) > abi.CLASS_WORDS:
            raise UserError(f"a class of packets has {len(words)} words, more than {abi.CLASS_WORDS}")
        row.words = len(words)
        for place, word in enumerate(words):
            row.word[place] = abi.ClassWordStruct(*word)
    return rows
