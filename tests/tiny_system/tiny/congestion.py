"""A congestion control of one's own: `--congestion-control tahoe`."""

from __future__ import annotations


class Tahoe:
    """The window of TCP Tahoe (Jacobson, "Congestion avoidance and control", SIGCOMM 1988), with marks as losses."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._size = 1.0
        self._threshold = float(maximum)
        self._counts_from = 0

    @property
    def window(self) -> int:
        return int(self._size)

    def acknowledged(self, number: int, next_number: int, *, marked: bool, limiting: bool) -> None:
        if marked:
            self.lost(number, next_number)
        elif limiting:
            growth = 1.0 if self._size < self._threshold else 1.0 / self._size
            self._size = min(float(self._maximum), self._size + growth)

    def lost(self, number: int, next_number: int) -> None:
        if number >= self._counts_from:
            self._counts_from = next_number
            self._threshold = max(2.0, self._size / 2)
            self._size = 1.0
