"""Frames that are to leave at times to come, where the kernel's interfaces have no such thing."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

Due = tuple[NDArray[np.uint8], NDArray[np.uint32] | None, bool]
"""Rows of bytes, their lengths if they differ, and whether they are to be stamped."""


class TimedFrames:
    """Batches in the order in which they were added; a batch waits for those before it."""

    def __init__(self) -> None:
        self._batches: deque[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint32] | None, bool]] = deque()

    def add(
        self, frames: NDArray[Any], times_ns: NDArray[np.int64], lengths: NDArray[np.uint32] | None, stamp: bool
    ) -> None:
        """As gradbed.hosts.agents.context.Interface.send_at."""
        if len(frames):
            rows = np.ascontiguousarray(frames).view(np.uint8).reshape(len(frames), -1)
            self._batches.append((rows, times_ns, lengths, stamp))

    @property
    def next_ns(self) -> int | None:
        """When the next frame is due; None: there is none."""
        return int(self._batches[0][1][0]) if self._batches else None

    def take_due(self, now_ns: int) -> list[Due]:
        """All frames whose time has come."""
        due: list[Due] = []
        while self._batches and self._batches[0][1][0] <= now_ns:
            rows, times_ns, lengths, stamp = self._batches.popleft()
            count = int(np.searchsorted(times_ns, now_ns, "right"))
            due.append((rows[:count], None if lengths is None else lengths[:count], stamp))
            if count < len(rows):
                rest = None if lengths is None else lengths[count:]
                self._batches.appendleft((rows[count:], times_ns[count:], rest, stamp))
        return due
