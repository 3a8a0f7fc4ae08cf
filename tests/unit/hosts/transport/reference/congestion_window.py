"""The window of congestion_window.h once more, in Python: the two are compared."""

from __future__ import annotations

from gradbed.hosts.transport.congestion_window import window_control
from gradbed.hosts.transport.statistics import WindowStatistics

INITIAL_FRAGMENTS = 10
LEAST_FRAGMENTS = 4
LEAST_AFTER_LOSS_FRAGMENTS = 8


class CongestionWindow:
    """The window of one sender; it stays from round to round."""

    def __init__(self, maximum_fragments: int, control: str) -> None:
        self._maximum = maximum_fragments
        self._adapts = window_control(control).adapts
        self._heeds_losses = window_control(control).heeds_losses
        self._size = float(min(INITIAL_FRAGMENTS, maximum_fragments) if self._adapts else maximum_fragments)
        self._threshold = float(maximum_fragments)
        self._counts_from = 0
        self._acks = 0
        self._total = 0
        self.statistics = WindowStatistics(least=self.fragments, greatest=self.fragments, last=self.fragments)

    @property
    def fragments(self) -> int:
        return int(self._size)

    def acknowledged(self, order: int, next_order: int, marked: bool, limiting: bool) -> None:
        self._acks += 1
        self._total += int(self._size)
        self.statistics.mean = self._total / self._acks
        if marked:
            self.statistics.congestion_marks += 1
            self._decrease(order, next_order, LEAST_FRAGMENTS)
        elif limiting and self._adapts and self._size < self._maximum:
            self._set(self._size + (1.0 if self._size < self._threshold else 1.0 / self._size))

    def lost(self, order: int, *, next_order: int) -> None:
        if self._heeds_losses:
            self._decrease(order, next_order, LEAST_AFTER_LOSS_FRAGMENTS)

    def _decrease(self, order: int, next_order: int, least: int) -> None:
        if not self._adapts or order < self._counts_from or self._size <= least:
            return
        self._counts_from = next_order
        self._set(max(float(least), self._size / 2))
        self._threshold = self._size
        self.statistics.decreases += 1

    def _set(self, size: float) -> None:
        self._size = min(float(self._maximum), size)
        fragments, statistics = int(self._size), self.statistics
        if fragments != statistics.last:
            statistics.least = min(statistics.least, fragments)
            statistics.greatest = max(statistics.greatest, fragments)
            statistics.last = fragments
