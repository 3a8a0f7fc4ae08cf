"""When to give a packet up for lost: RFC 6298's estimator, with the backoff of thin streams.

NDN's nodes use it. Senders have the same in C (retransmission_timeout.h); tests hold the two against each other.
"""

from __future__ import annotations

CONSTANT_TIMEOUTS = 4
"""A fragment's first timers are all equally long, only the later ones double (tcp_thin_linear_timeouts in Linux):
the last fragments of a round are a thin stream, with no ACKs to later ones that would reveal a loss sooner."""
MAX_BACKED_OFF_US = 250_000
"""Doubling ends here, unless the timeout itself is longer. RFC 6298 allows a minute: here round trips take
milliseconds, and who is asked for 30 s before it is given up is to be asked often enough. Where each link loses 20 %,
one of six questions over four links is answered: 30 of them all fail once in 300 times, 120 never."""
_WORD = (1 << 64) - 1


class RetransmissionTimeout:
    """Smoothed round trip, its variation, and the timeout that follows from both."""

    def __init__(self, initial_us: int) -> None:
        """initial_us: timeout before the first measurement."""
        self._initial_us = initial_us
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

    def base_us(self, margin_us: int) -> int:
        """The timeout without backoff, at least `margin_us` longer than the smoothed round trip.

        Linux does the same (tcp_rto_min). RFC 6298 bounds the whole timeout from below, which is no margin at all
        once round trips are long.
        """
        if self._smoothed_us is None:
            return self._initial_us
        return round(self._smoothed_us + max(margin_us, 4 * self._variation_us))


def backed_off_us(base_us: int, timeouts: int) -> int:
    """Length of a timer that has run out `timeouts` times before and was `base_us` long at first."""
    doublings = min(max(0, timeouts - CONSTANT_TIMEOUTS + 1), 32)
    return max(base_us, min(base_us << doublings, MAX_BACKED_OFF_US))


def sender_seed(seed: int, worker: int) -> int:
    """Seed of a sender's random delays, another for each worker; never 0. seed: of the run."""
    return mixed((seed << 20) + worker + 1) or 1


def mixed(value: int) -> int:
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    value &= _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
