"""A worker's sending rate as it finds it while it sends: bytes that were acknowledged, interval by interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """The rate of an interval that ended at time_us; 0: nothing was acknowledged. settled: the rate of the interval
    before it, if this one is within the threshold of that."""

    time_us: int
    rate_bps: float
    settled_bps: float | None = None


class RateMonitor:
    """Begins anew with each gradient. Times are microseconds of the caller's clock.

    A rate is bytes over the time between the last acknowledgements of two intervals, so that it does not matter where
    between two packets an interval ends. Of intervals without any nothing is settled: a link that stands still has
    no rate to plan by.
    """

    def __init__(self, interval_us: int, threshold: float) -> None:
        """threshold: how much two rates in turn may differ, relative to the first, to be taken for settled."""
        self._interval_us = interval_us
        self._threshold = threshold
        self._reset(0)

    def _reset(self, now_us: int) -> None:
        self.due_us: int | None = None
        """When the present interval ends; None: nothing was acknowledged yet."""
        self._bytes = 0
        self._last_us = now_us
        self._marked_bytes = 0
        self._marked_us = now_us
        self.initial_bps: float | None = None
        """The first reading that was not zero."""
        self._rate_bps = 0.0

    def begin(self, now_us: int) -> None:
        self._reset(now_us)

    def acknowledged(self, size_bytes: int, now_us: int) -> None:
        if self.due_us is None:
            # The first acknowledgement starts the clock; what it is about was sent before.
            self.due_us = now_us + self._interval_us
            self._marked_us = now_us
        else:
            self._bytes += size_bytes
        self._last_us = now_us

    def read(self, now_us: int) -> Reading | None:
        """The reading of the interval that is over; None: none is."""
        if self.due_us is None or now_us < self.due_us:
            return None
        while self.due_us <= now_us:
            self.due_us += self._interval_us
        elapsed_us = self._last_us - self._marked_us
        rate_bps = 8e6 * (self._bytes - self._marked_bytes) / elapsed_us if elapsed_us else 0.0
        self._marked_bytes, self._marked_us = self._bytes, max(self._last_us, self._marked_us)
        before_bps, self._rate_bps = self._rate_bps, rate_bps
        if self.initial_bps is None and rate_bps:
            self.initial_bps = rate_bps
        settled = bool(before_bps and rate_bps) and abs(rate_bps - before_bps) / before_bps <= self._threshold
        return Reading(now_us, rate_bps, before_bps if settled else None)
