"""What an agent's interfaces carried, counted beneath the agent: the same for every system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.frames.class_counts import ClassCounts, Patterns


@dataclass
class InterfaceCounts:
    """Whole Ethernet frames without FCS, as switches count them. drops: frames that had no room in the buffer.
    sent_classes, received_classes: the frames by class."""

    sent_frames: int = 0
    sent_bytes: int = 0
    received_frames: int = 0
    received_bytes: int = 0
    drops: int = 0
    sent_classes: ClassCounts = field(default_factory=ClassCounts)
    received_classes: ClassCounts = field(default_factory=ClassCounts)

    @classmethod
    def by(cls, patterns: Patterns) -> InterfaceCounts:
        """By these classes."""
        return cls(sent_classes=ClassCounts(patterns), received_classes=ClassCounts(patterns))

    def add_sent(self, frames: NDArray[Any], taken: int, lengths: NDArray[np.uint32] | None = None) -> None:
        """frames: one per row, of which the first were taken. lengths (frames,): of each; None: whole rows."""
        if taken:
            self.sent_frames += taken
            self.sent_bytes += self.sent_classes.add(frames, taken, lengths)

    def take_back_sent(self, frames: NDArray[Any]) -> None:
        """Frames, one per row, that were counted and then had no room."""
        self.sent_frames -= len(frames)
        self.sent_bytes -= self.sent_classes.take_back(frames)

    def add_received(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32]) -> None:
        """The rows of the buffer that have a length."""
        self.received_frames += len(lengths)
        self.received_bytes += self.received_classes.add(buffer, len(lengths), lengths)

    def as_json(self) -> dict[str, Any]:
        """sent_classes, received_classes: a list by class, [0] those of none; empty without classes."""
        classes = {name: getattr(self, name).by_class() for name in ("sent_classes", "received_classes")}
        return {**vars(self), **classes}


class AsJson(Protocol):
    """InterfaceCounts, or what tells the same."""

    def as_json(self) -> dict[str, Any]: ...


def by_interface(opened: Iterable[tuple[str, AsJson]]) -> dict[str, dict[str, Any]]:
    """As JSON, by the interface's name; what was opened several times counts together."""
    found: dict[str, dict[str, Any]] = {}
    for name, counts in opened:
        now = counts.as_json()
        before = found.setdefault(name, now)
        if before is not now:
            found[name] = {key: _sum(before[key], now[key]) for key in now}
    return found


def _sum(a: Any, b: Any) -> Any:
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b
