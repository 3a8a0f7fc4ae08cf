"""What a worker measures of the time to a global sum, apart from how late the other workers are.

From sending a fragment to receiving its global sum there is also the wait for the slowest worker, which may be
slow in two ways. It repairs a loss: the server marks the sums that a repeated packet made complete or asked for, or
one that a timer held up (else timers would lengthen the waits, and waits the timers), and these are no samples. All
others are, even of a fragment that this worker did send again, since its first transmission was the one that counted
(so the mark resolves the ambiguity that Karn and Partridge 1987 avoid). Or the slowest worker began its round later:
that lateness is the same for all fragments sent before the round's first ACK, which measures it; it is taken off
their samples, and timers start at the first ACK at the earliest.
"""

from __future__ import annotations

from collections import deque

from gradbed.hosts.transport.retransmission_timeout import RetransmissionTimeout, backed_off_us

INITIAL_FACTOR = 10
"""Before the first sample the timeout is this many minimum timeouts; RFC 6298's second is for the Internet."""
KEPT_ROUNDS = 16
"""For how many rounds the least round trip (a windowed minimum, as in RFC 8985, section 6.2) and losses are known."""
LOSSLESS_PATIENCE = 4
"""How many minimum timeouts an ACK may be late while nothing gets lost, so that only a busy machine delays it."""
PROBE_PATIENCE = 8
"""Before the first ACK a timer is as many times longer as fragments are out, at most this: the more are out,
the less likely are losses to have stopped all of them, and the more likely is a late worker. Only while nothing gets
lost."""
MAX_TIMEOUT_US = 1_000_000
"""The timeout itself is no longer while packets get lost (RFC 6298, 2.5): waits for each other's repairs are taken
for round trips now and then, and one of 3 s would leave 10 tries until the server is given up."""
THIN_STREAM = 3
"""Few enough fragments unacknowledged to know that queues are short: they are the last of the round for all workers,
except for those that lost an ACK."""


class RoundTrips:
    """One worker's measurements and timers; times are microseconds of the caller's clock."""

    def __init__(self, min_timeout_us: int) -> None:
        self._min_timeout_us = min_timeout_us
        self._timeout = RetransmissionTimeout(INITIAL_FACTOR * min_timeout_us)
        self._start_us = 0
        self._first_ack_us: int | None = None
        self._lateness_us = 0
        self._least_us: int | None = None
        self._least_of_rounds_us: deque[int] = deque(maxlen=KEPT_ROUNDS)
        self._least_of_all_us: int | None = None
        """Of these, and of this round."""
        self._lossless_rounds = KEPT_ROUNDS

    def begin(self, now_us: int) -> None:
        """A round begins."""
        if self._least_us is not None:
            self._least_of_rounds_us.append(self._least_us)
            self._least_of_all_us = min(self._least_of_rounds_us)
        self._start_us = now_us
        self._first_ack_us = None
        self._lateness_us = 0
        self._least_us = None
        self._lossless_rounds += 1

    @property
    def all_have_begun(self) -> bool:
        """The round has had an ACK; so every worker has begun it."""
        return self._first_ack_us is not None

    @property
    def least_us(self) -> int | None:
        """Least round trip of this round and those before; None: no ACK yet."""
        return self._least_of_all_us

    def acknowledged(self, first_sent_us: int, now_us: int, after_resend: bool) -> None:
        """A global sum has come. first_sent_us: when its fragment was sent first. after_resend: it is marked."""
        least_us = self._least_of_all_us
        if self._first_ack_us is None:
            self._first_ack_us = now_us
            if least_us is not None:
                self._lateness_us = max(0, now_us - self._start_us - least_us)
        round_trip_us = now_us - first_sent_us
        if least_us is not None and 2 * round_trip_us < least_us:
            # What was taken for round trips so far was mostly lateness.
            self._timeout = RetransmissionTimeout(INITIAL_FACTOR * self._min_timeout_us)
        if self._least_us is None or round_trip_us < self._least_us:
            self._least_us = round_trip_us
            if least_us is None or round_trip_us < least_us:
                self._least_of_all_us = least_us = round_trip_us
        if after_resend:
            self._lossless_rounds = 0
            return
        if first_sent_us <= self._first_ack_us:
            round_trip_us = max(least_us or 0, round_trip_us - self._lateness_us)
        self._timeout.sample(round_trip_us)

    def deadline_us(self, sent_us: int, *, timeouts: int, resent: bool, unacknowledged: int) -> int:
        """When the timer of a fragment runs out: never sooner than that of one that was sent before, all else equal.

        sent_us, resent: of its latest transmission. timeouts: how often its timer has run out before.
        unacknowledged: number of fragments that have been sent and are not acknowledged.
        """
        margin_us = self._min_timeout_us
        if self._lossless_rounds >= KEPT_ROUNDS:
            margin_us *= LOSSLESS_PATIENCE
        base_us = self._timeout.base_us(margin_us)
        if self._lossless_rounds < KEPT_ROUNDS:
            base_us = min(base_us, max(MAX_TIMEOUT_US, INITIAL_FACTOR * self._min_timeout_us))
        if self._first_ack_us is None:
            times = min(unacknowledged, PROBE_PATIENCE) if self._lossless_rounds >= KEPT_ROUNDS else 1
            patient_us = min(base_us * times, MAX_TIMEOUT_US)
            return sent_us + backed_off_us(max(base_us, patient_us), timeouts)
        least_us = self.least_us
        if resent and unacknowledged <= THIN_STREAM and least_us is not None:
            base_us = min(base_us, least_us + margin_us)
        return max(sent_us, self._first_ack_us) + backed_off_us(base_us, timeouts)
