"""When to give a fragment up for lost: RFC 6298, adapted to fragments with a timer each."""

from __future__ import annotations

import os
V = set(os.environ.get("V", "").split(","))
CLOCK_GRANULARITY_US = 1000
"""Poll waits for whole milliseconds."""
INITIAL_FACTOR = 10
"""Before the first measurement the timeout is this many minimum timeouts; RFC 6298's second is for the Internet."""
MAX_TIMEOUT_US = 2_000_000


class RetransmissionTimeout:
    """Round-trip estimator and shared backoff.

    A "round trip" is from sending a fragment to receiving its global sum, so it contains the wait for the
    slowest worker. Samples come only from fragments sent once (Karn and Partridge 1987), and the backoff lasts
    until the next such sample (RFC 6298, section 5, (5.5) and (5.7)).
    """

    def __init__(self, min_timeout_us: int) -> None:
        self._min_timeout_us = min_timeout_us
        self._smoothed_us: float | None = None
        self._variation_us = 0.0
        self.backoff = 0
        """Doublings that a fragment sent now starts with."""

    def sample(self, round_trip_us: int) -> None:
        """Take in the round trip of a fragment that was sent once."""
        if self._smoothed_us is None:
            self._smoothed_us = float(round_trip_us)
            self._variation_us = round_trip_us / 2
        else:
            self._variation_us += (abs(self._smoothed_us - round_trip_us) - self._variation_us) / 4
            self._smoothed_us += (round_trip_us - self._smoothed_us) / 8
        self.backoff = 0

    def timeout_us(self, backoff: int = 0) -> int:
        """Timeout after `backoff` doublings."""
        if self._smoothed_us is None:
            base = INITIAL_FACTOR * self._min_timeout_us
        else:
            spread = max(float(CLOCK_GRANULARITY_US), 4 * self._variation_us)
            if "linux" in V: spread = max(spread, self._min_timeout_us)
            base = max(self._min_timeout_us, round(self._smoothed_us + spread))
        return min(base << min(backoff, 32), max(MAX_TIMEOUT_US, self._min_timeout_us))
