"""Counts of the frames that an agent's interfaces carry, in all and by class (formats/packet_class.py).

They are counted beneath the agent, the same for every system, where it matters in C (frames.h).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.c_headers import CHeaders
from gradbed.common.c_library import shared_library

# ---- The C library (frames.h) ----


FRAMES_SOURCE = Path(__file__).with_name("frames.c")
FRAMES_HEADERS = CHeaders(FRAMES_SOURCE.with_suffix(".h"))


@FRAMES_HEADERS.declare("gb_word")
class WordStruct(ctypes.Structure):
    """A word of a class of frames."""


@functools.cache
def frames_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    # PyDLL: calls are too short to let go of the interpreter's lock.
    path = shared_library("gradbed-frames", [FRAMES_SOURCE], include_dirs=[FRAMES_SOURCE.parent])
    library = ctypes.PyDLL(str(path))
    FRAMES_HEADERS.bind(library)
    return library


# ---- Frames by class ----


Patterns = Sequence[Sequence[tuple[int, int, int]]]
"""Of each class its words: offset, mask, value."""
_ANY = ((0, 0, 0),)
"""Words of a class that has none: it takes every frame."""


class ClassCounts:
    """Counts frames; without patterns only their bytes."""

    def __init__(self, patterns: Patterns = ()) -> None:
        words = [
            WordStruct(*word, last=place == len(each or _ANY))
            for each in patterns
            for place, word in enumerate(each or _ANY, start=1)
        ]
        self.words, self.word_count = (WordStruct * len(words))(*words), len(words)
        self._counts = np.zeros(len(patterns) + 1, np.uint64)
        self._classes = len(self._counts) if patterns else 0
        self.address = self._counts.ctypes.data
        """Of the counts, for who counts in C, and of what tells classes apart (frames.h)."""

    def add(self, frames: NDArray[Any], count: int, lengths: NDArray[np.uint32] | None) -> int:
        """The first frames, one per row; lengths (frames,): of each; None: whole rows. How many bytes they have."""
        if not count:
            return 0
        rows = np.ascontiguousarray(frames)
        at = None if lengths is None else np.ascontiguousarray(lengths, np.uint32)
        size_bytes: int = frames_library().gb_count_classes(
            self.words,
            self.word_count,
            self.address,
            rows.ctypes.data,
            rows.nbytes // len(rows),
            None if at is None else at.ctypes.data,
            count,
        )
        return size_bytes

    def take_back(self, frames: NDArray[Any]) -> int:
        """Frames that were added, one per row, do not count after all. How many bytes they have."""
        before = self._counts.copy()
        size_bytes = self.add(frames, len(frames), None)
        self._counts[:] = 2 * before - self._counts
        return size_bytes

    def by_class(self) -> list[int]:
        """[0]: of no class. Empty without patterns."""
        found: list[int] = self._counts[: self._classes].tolist()
        return found


# ---- Frames by interface ----


@dataclass
class InterfaceCounts:
    """Whole Ethernet frames without FCS, as switches count them."""

    sent_frames: int = 0
    sent_bytes: int = 0
    received_frames: int = 0
    received_bytes: int = 0
    drops: int = 0
    """Frames that had no room in the buffer."""
    sent_classes: ClassCounts = field(default_factory=ClassCounts)
    """Sent frames by class."""
    received_classes: ClassCounts = field(default_factory=ClassCounts)
    """Received frames by class."""

    @classmethod
    def by(cls, patterns: Patterns) -> InterfaceCounts:
        """Return counts by these classes."""
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
    """Return the counts as JSON, by the interface's name; what was opened several times counts together."""
    found: dict[str, dict[str, Any]] = {}
    for name, counts in opened:
        now = counts.as_json()
        before = found.setdefault(name, now)
        if before is not now:
            found[name] = {key: _sum(before[key], now[key]) for key in now}
    return found


def _sum(a: Any, b: Any) -> Any:
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b
