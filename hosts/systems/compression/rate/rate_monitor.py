"""A worker's sending rate as it finds it while it sends: bytes that were acknowledged, interval by interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """The rate of an interval that ended at time_us; 0: nothing was acknowledged. settled_bps: the rate of the
    interval before it, if this one is within the threshold of that. sent_bps: at which the same packets were sent."""

    time_us: int
    rate_bps: float
    settled_bps: float | None = None
    sent_bps: float = 0.0


class RateMonitor:
    """Begins anew with each gradient. Times are microseconds, of intervals by the caller's clock.

    A rate is bytes over the time between the last packets of two intervals, so that it does not matter where between
    two packets an interval ends. Of intervals without any nothing is settled: a link that stands still has no rate to
    plan by.
    """

    def __init__(self, interval_us: int, threshold: float) -> None:
        """threshold: how much two rates in turn may differ, relative to the first, to be taken for settled."""
        self._interval_us = interval_us
        self._threshold = threshold
        self.begin()

    def begin(self) -> None:
        self.due_us: int | None = None
        """When the present interval ends; None: nothing was acknowledged yet."""
        self._bytes = 0.0
        self._arrived_us = self._sent_us = 0
        """Of the last packet."""
        self._marked = (0, 0)
        """These at the end of the interval before."""
        self.initial_bps: float | None = None
        """The first reading that was not zero."""
        self._rate_bps = 0.0

    def acknowledged(self, size_bytes: float, now_us: int, *, arrived_us: int, sent_us: int) -> None:
        """arrived_us, sent_us: of the last packet that this is about, by the clocks of the server and the caller."""
        if self.due_us is None:
            # The first acknowledgement starts the clock; what it is about was sent before.
            self.due_us = now_us + self._interval_us
            self._marked = (arrived_us, sent_us)
        else:
            self._bytes += size_bytes
        self._arrived_us, self._sent_us = arrived_us, sent_us

    def read(self, now_us: int) -> Reading | None:
        """The reading of the interval that is over; None: none is."""
        if self.due_us is None or now_us < self.due_us:
            return None
        while self.due_us <= now_us:
            self.due_us += self._interval_us
        ends_us = (self._arrived_us, self._sent_us)
        spans_us = [end_us - begun_us for end_us, begun_us in zip(ends_us, self._marked, strict=True)]
        rate_bps, sent_bps = (8e6 * self._bytes / span_us if span_us > 0 else 0.0 for span_us in spans_us)
        self._bytes, self._marked = 0.0, ends_us
        before_bps, self._rate_bps = self._rate_bps, rate_bps
        if self.initial_bps is None and rate_bps:
            self.initial_bps = rate_bps
        settled = bool(before_bps and rate_bps) and abs(rate_bps - before_bps) / before_bps <= self._threshold
        return Reading(now_us, rate_bps, before_bps if settled else None, sent_bps)
