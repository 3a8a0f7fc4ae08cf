"""How many fragments a worker may have unacknowledged: TCP's slow start, additive increase, multiplicative decrease.

What TCP counts in segments is counted in fragments here (RFC 5681, section 3.1): in slow start each ACK opens
the window by one fragment, later a window's worth of ACKs does. An ACK that is marked (ECN, RFC 3168, section
6.1.2) or a loss halves it, at most once per round trip: only transmissions that were made after the last decrease
count. Time and packets are the caller's; transmissions are numbered in the order in which they were made.
"""

from __future__ import annotations

from typing import Literal

from gradbed.hosts.transport.statistics import WindowStatistics

CongestionControl = Literal["aimd", "ecn", "none"]

INITIAL_FRAGMENTS = 10
"""RFC 6928, section 2."""
LEAST_FRAGMENTS = 4
"""A loss is found without a timer once three later fragments are acknowledged (RFC 5681): fewer would leave it to
timers, which take a hundred times as long as a round trip."""
LEAST_AFTER_LOSS_FRAGMENTS = 8
"""Losses alone close the window no further. Links that lose packets at random hit most fragments of many workers;
small windows then drive the workers apart, and timers grow with the wait for each other."""


class CongestionWindow:
    """One worker's window; it stays from round to round."""

    def __init__(self, maximum_fragments: int, control: CongestionControl) -> None:
        """control: aimd, or ecn: the same without heed of losses, or none: the window is always the maximum."""
        self._maximum = maximum_fragments
        self._adapts = control != "none"
        self._heeds_losses = control == "aimd"
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
        """An ACK to the transmission with place `order` has come.

        next_order: the place of the next transmission. limiting: fragments wait for the window to open; where none
        do, ACKs do not show that the network carries more (RFC 7661).
        """
        self._acks += 1
        self._total += int(self._size)
        self.statistics.mean = self._total / self._acks
        if marked:
            self.statistics.congestion_marks += 1
            self._decrease(order, next_order, LEAST_FRAGMENTS)
        elif limiting and self._adapts and self._size < self._maximum:
            self._set(self._size + (1.0 if self._size < self._threshold else 1.0 / self._size))

    def lost(self, order: int, *, next_order: int) -> None:
        """The transmission with place `order` is taken for lost."""
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
