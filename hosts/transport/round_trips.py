"""What a worker knows about the time to a global sum, apart from how late the other workers are.

A fragment's round trip, from sending it to receiving its global sum, contains the wait for the slowest worker.
Two things make another worker slow. It repairs a loss: the server marks the sums that took a resend, and they are
no samples, just as those of the fragments that this worker sent again (Karn and Partridge 1987, for a group).
Or it began its round later. That lateness, alike for all fragments sent before the round's first answer, is
estimated from that answer and taken off their samples. Timers leave it out as well: before the first answer
nobody knows whether all have begun, and only a probe's timer runs, which has an estimator of its own.
"""

from __future__ import annotations

from collections import deque

from hosts.transport.retransmission_timeout import RetransmissionTimeout

_KEPT_ROUNDS = 16
"""Rounds over which the least round trip is taken (RFC 8985 keeps its minimum over a window, too)."""


class RoundTrips:
    """Estimators of one worker; times in microseconds of the caller's clock."""

    def __init__(self, min_timeout_us: int) -> None:
        self.fragments = RetransmissionTimeout(min_timeout_us)
        """For fragments from the moment on when all workers are known to have begun."""
        self.probes = RetransmissionTimeout(min_timeout_us)
        """For the round's first answer, so with the workers' lateness in it."""
        self._start_us = 0
        self._first_answer_us: int | None = None
        self._lateness_us = 0
        self._round_least_us: int | None = None
        self._least_us: deque[int] = deque(maxlen=_KEPT_ROUNDS)

    def begin(self, now_us: int) -> None:
        """A round begins."""
        if self._round_least_us is not None:
            self._least_us.append(self._round_least_us)
        self._round_least_us = None
        self._start_us = now_us
        self._first_answer_us = None
        self._lateness_us = 0

    @property
    def all_have_begun(self) -> bool:
        """The round has had an answer, to which every worker has contributed."""
        return self._first_answer_us is not None

    @property
    def least_us(self) -> int | None:
        """Least round trip of the last rounds; None: not known yet."""
        known = [*self._least_us] if self._round_least_us is None else [*self._least_us, self._round_least_us]
        return min(known, default=None)

    def first_answer(self, now_us: int, *, resent: bool) -> None:
        """The round's first global sum has come. resent: it took a resend, of whatever worker."""
        self._first_answer_us = now_us
        round_trip_us = now_us - self._start_us
        if False:
            self.probes.sample(round_trip_us)
        self._lateness_us = max(0, round_trip_us - (self.least_us or round_trip_us))

    def sample(self, sent_us: int, now_us: int) -> None:
        """Take in the round trip of a fragment that no worker sent again, after the round's first answer."""
        round_trip_us = now_us - sent_us
        least_us = self.least_us
        if self._round_least_us is None or round_trip_us < self._round_least_us:
            self._round_least_us = round_trip_us
        if least_us is not None and sent_us <= self._first_answer_us:
            round_trip_us = max(least_us, round_trip_us - self._lateness_us)
        self.fragments.sample(round_trip_us)

    def counts_from_us(self, sent_us: int) -> int:
        """From when on a fragment's timer runs."""
        return sent_us if self._first_answer_us is None else max(sent_us, self._first_answer_us)
