"""How many frames of each class (formats/packet_class.py) an interface carried. Frames are counted by the bytes that
tell classes apart, many at a time; which class these are is only looked up at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Patterns = Sequence[Sequence[tuple[int, int, int]]]
"""Of each class its words: offset, mask, value."""

_UNCOUNTED_BYTES = 4096
"""So many are kept before they are counted: enough that it is done in few steps, and little for a thousand hosts."""


class ClassCounts:
    """Counts frames; without patterns nothing."""

    def __init__(self, patterns: Patterns = ()) -> None:
        self._patterns = patterns
        masks: dict[int, int] = {}
        for offset, mask, _ in (word for words in patterns for word in words):
            for place, bits in ((offset, mask >> 8), (offset + 1, mask & 0xFF)):
                if bits:
                    masks[place] = masks.get(place, 0) | bits
        self._offsets = np.array(sorted(masks), np.intp)
        self._masks = np.array([masks[place] for place in sorted(masks)], np.uint8)
        self._frames: Counter[bytes] = Counter()
        self._uncounted = bytearray()
        """What is looked at of frames, one after the other."""

    def add(self, frames: NDArray[Any], count: int, lengths: NDArray[np.uint32] | None) -> None:
        """The first frames, one per row; lengths (frames,): of each; None: whole rows."""
        width = len(self._offsets)
        if not width or not count:
            return
        rows = frames[:count]
        if rows.dtype != np.uint8:
            rows = rows.view(np.uint8)
        rows = rows.reshape(count, -1)
        if self._offsets[-1] < rows.shape[1]:
            looked_at = rows.take(self._offsets, axis=1)
        else:
            there = self._offsets < rows.shape[1]
            looked_at = np.zeros((count, width), np.uint8)
            looked_at[:, there] = rows[:, self._offsets[there]]
        if lengths is not None and min(lengths[:count].tolist()) <= self._offsets[-1]:
            looked_at[self._offsets >= lengths[:count, None]] = 0
        self._uncounted += looked_at.tobytes()
        if len(self._uncounted) > _UNCOUNTED_BYTES:
            self._count()

    def _count(self) -> None:
        looked_at = np.frombuffer(self._uncounted, np.uint8).reshape(-1, len(self._offsets)) & self._masks
        self._frames.update(looked_at.view(f"V{len(self._offsets)}").ravel().tolist())
        self._uncounted = bytearray()

    def by_class(self) -> list[int]:
        """[0]: of no class. Empty without patterns."""
        if self._uncounted:
            self._count()
        found = [0] * (len(self._patterns) + 1) if self._patterns else []
        for key, count in self._frames.items():
            found[self._class_of(dict(zip(self._offsets.tolist(), key, strict=True)))] += count
        return found

    def _class_of(self, bytes_at: dict[int, int]) -> int:
        for number, words in enumerate(self._patterns, start=1):
            if all(
                (bytes_at.get(offset, 0) << 8 | bytes_at.get(offset + 1, 0)) & mask == value
                for offset, mask, value in words
            ):
                return number
        return 0
