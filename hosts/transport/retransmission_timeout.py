"""When to give a fragment up for lost: RFC 6298's estimator, with the backoff of thin streams."""

from __future__ import annotations

INITIAL_FACTOR = 10
"""Before the first measurement the timeout is this many minimum timeouts; RFC 6298's second is for the Internet."""
CONSTANT_TIMEOUTS = 4
"""A fragment's first timers are all equally long, only the later ones double (tcp_thin_linear_timeouts in Linux):
the last fragments of a round are a thin stream, with no answers to later ones that would reveal a loss sooner."""
MAX_BACKED_OFF_US = 1_000_000
"""Doubling ends here, unless the timeout itself is longer."""


class RetransmissionTimeout:
    """Smoothed round trip, its variation, and the timeout that follows from both."""

    def __init__(self, min_timeout_us: int) -> None:
        """min_timeout_us: added to the smoothed round trip at least, as in Linux (tcp_rto_min).

        RFC 6298 bounds the whole timeout from below, which is no margin at all once round trips are long.
        """
        self._min_timeout_us = min_timeout_us
        self._smoothed_us: float | None = None
        self._variation_us = 0.0

    def sample(self, round_trip_us: int) -> None:
        """Take in a round trip."""
        if self._smoothed_us is None:
            self._smoothed_us = float(round_trip_us)
            self._variation_us = round_trip_us / 2
        else:
            self._variation_us += (abs(self._smoothed_us - round_trip_us) - self._variation_us) / 4
            self._smoothed_us += (round_trip_us - self._smoothed_us) / 8

    @property
    def base_us(self) -> int:
        """The timeout without any backoff."""
        if self._smoothed_us is None:
            return INITIAL_FACTOR * self._min_timeout_us
        return round(self._smoothed_us + max(self._min_timeout_us, 4 * self._variation_us))


def backed_off_us(base_us: int, timeouts: int) -> int:
    """Length of a timer that has run out `timeouts` times before and was `base_us` long at first."""
    doublings = min(max(0, timeouts - CONSTANT_TIMEOUTS + 1), 32)
    return max(base_us, min(base_us << doublings, MAX_BACKED_OFF_US))
