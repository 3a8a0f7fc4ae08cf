"""How many frames of each class (formats/packet_class.py) an interface carried."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.frames.library import WordStruct, frames_library

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
        self._words = (WordStruct * len(words))(*words)
        self._counts = np.zeros(len(patterns) + 1, np.uint64)
        self._classes = len(self._counts) if patterns else 0
        self.words, self.word_count = ctypes.addressof(self._words), len(words)
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
