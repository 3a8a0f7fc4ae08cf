"""What a stream's sender does (hosts/transport/stream_sender.h), once more, in Python: the two are compared.

Packets are numbered as they are sent first. The other end (stream_receiver.py) acknowledges them cumulatively, and
selectively those beyond the first gap (RFC 2018). A packet is lost when three that were sent after it have been
acknowledged, or all have and nothing new may be sent (RFC 6675, RFC 5827), or one that was sent a whole timeout later
(RFC 8985). There is one timer (RFC 6298): where it runs out, the oldest packet is sent again, and what comes of that
tells whether the others are lost or a worker was only kept waiting.
What a repeated packet's acknowledgement says of time and order counts only if it cannot be due to an earlier
transmission (Karn and Partridge 1987; RFC 8985, section 6.2, for the least round trip). Packets may be used in any
order by the other end, so nothing waits for a gap but the window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.hosts.transport.retransmission_timeout import RetransmissionTimeout, backed_off_us, mixed
from gradbed.hosts.transport.statistics import StreamStatistics
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, SELECTIVE_BITS, forward_distance
from tests.unit.hosts.transport.reference.congestion_window import CongestionWindow

LOST_AFTER = 3
"""Later transmissions that are acknowledged before a packet counts as lost (RFC 5681's DupThresh)."""
INITIAL_FACTOR = 10
"""Before the first sample the timeout is this many minimum timeouts."""
_GOLDEN, _STEP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


def randomised_us(length_us: int, seed: int, number: int, timeouts: int) -> int:
    """A timer that has run out before becomes up to half longer, so that senders leave step (RFC 5740, 5.2).

    Without jitter, timers that were set in one nanosecond run out in one, and a queue shorter than their packets
    keeps the same of them each time. seed: of the sender, 0: no delay. number: of the packet. timeouts: how often the
    timer has run out.
    """
    if not seed or not timeouts:
        return length_us
    return length_us + length_us * (mixed(seed + number * _GOLDEN + timeouts * _STEP) >> 54) // 2048


@dataclass
class _Flight:
    """A packet that is not acknowledged yet."""

    order: int
    """Its latest transmission's place among all transmissions."""
    sent_us: int
    """Its latest transmission."""
    repeated: bool = False
    overtaken: int = 0
    lost: bool = False


class StreamSender:
    """Window, timers and repeated transmissions towards one receiver."""

    def __init__(
        self,
        *,
        window_packets: int,
        min_timeout_us: int,
        congestion_control: str = "aimd",
        first_sequence: int = 0,
        seed: int = 0,
    ) -> None:
        """window_packets: the window's maximum. Unacknowledged sequence numbers are never further apart than an
        acknowledgement tells of. seed: of random delays of timers that have run out before (sender_seed); 0: none."""
        self._seed = seed
        self._window = CongestionWindow(window_packets, congestion_control)
        self._min_timeout_us = min_timeout_us
        self._timeout = RetransmissionTimeout(INITIAL_FACTOR * min_timeout_us)
        self._timeouts = 0
        """How often the timer has run out since the last news."""
        self._news_us = 0
        self._least_us: int | None = None
        self._next = first_sequence
        self._queued = 0
        self._order = 0
        self._flights: dict[int, _Flight] = {}  # by sequence, in the order of sequences
        self.statistics = StreamStatistics(window=self._window.statistics)

    def queue(self, packets: int) -> None:
        """Queue so many more packets; they get the next sequence numbers in turn."""
        self._queued += packets

    def withdraw(self) -> None:
        """Drop the packets that wait and have never been sent."""
        self._queued = 0

    @property
    def queued(self) -> int:
        """Packets that have never been sent."""
        return self._queued

    @property
    def finished(self) -> bool:
        """Return whether all is acknowledged."""
        return not self._queued and not self._flights

    @property
    def _may_send_new(self) -> bool:
        if not self._queued or len(self._flights) >= self._window.fragments:
            return False
        return not self._flights or forward_distance(next(iter(self._flights)), self._next) <= SELECTIVE_BITS

    def transmissions(self, now_us: int, most: float = math.inf) -> list[int]:
        """Sequence numbers of the packets to send now, repeated ones first, `most` at most; counts as sent."""
        out: list[int] = []
        for sequence, flight in self._flights.items():
            if flight.lost and len(out) < most:
                self.statistics.early_resends += 1
                out.append(self._again(sequence, now_us))
        if not out and self._flights and self._timer_us() <= now_us:
            self.statistics.timeout_resends += 1
            self._timeouts += 1
            out.append(self._again(self._oldest, now_us))
        while self._may_send_new and len(out) < most:
            self._flights[self._next] = _Flight(order=self._order, sent_us=now_us)
            out.append(self._next)
            self._order += 1
            self._next = (self._next + 1) % PACKET_NUMBERS
            self._queued -= 1
        return out

    def _again(self, sequence: int, now_us: int) -> int:
        flight = self._flights[sequence]
        self._window.lost(flight.order, next_order=self._order)
        flight.order, flight.sent_us = self._order, now_us
        flight.repeated, flight.overtaken, flight.lost = True, 0, False
        self._order += 1
        return sequence

    @property
    def _oldest(self) -> int:
        """The packet whose latest transmission was made first."""
        return min(self._flights, key=lambda sequence: self._flights[sequence].order)

    def _timer_us(self) -> int:
        """Return when the one timer runs out: of the oldest transmission, started anew by every news."""
        oldest = self._oldest
        since_us = max(self._flights[oldest].sent_us, self._news_us)
        length_us = backed_off_us(self._base_us, self._timeouts)
        return since_us + randomised_us(length_us, self._seed, oldest, self._timeouts)

    @property
    def _base_us(self) -> int:
        return self._timeout.base_us(self._min_timeout_us)

    @property
    def deadline_us(self) -> int | None:
        """Return when `transmissions` has something to send at the latest; None: after an acknowledgement alone."""
        if self._may_send_new or any(flight.lost for flight in self._flights.values()):
            return 0
        return self._timer_us() if self._flights else None

    def acknowledge(self, sequence: int, selective: int, congested: bool, now_us: int) -> list[int]:
        """All before `sequence` have come, and sequence + 1 + k for every set bit k; returns those that is news of.

        congested: a packet that this is about met a long queue. An acknowledgement of what was never sent, or an
        old one, says nothing new.
        """
        if forward_distance(sequence, self._next) >= PACKET_NUMBERS // 2:
            self.statistics.stale_acknowledgements += 1
            return []
        news = [
            number
            for number in self._flights
            if (ahead := forward_distance(sequence, number)) >= PACKET_NUMBERS // 2
            or (0 < ahead <= SELECTIVE_BITS and selective >> (ahead - 1) & 1)
        ]
        if not news:
            self.statistics.stale_acknowledgements += 1
            return []
        self._news_us, self._timeouts = now_us, 0
        through = []
        flights = [self._flights.pop(number) for number in news]
        after_repeat = any(flight.repeated for flight in flights)
        for flight in flights:
            self._window.acknowledged(
                flight.order, next_order=self._order, marked=congested, limiting=self._queued > 0
            )
            congested = False  # one mark, one reaction
            if self._learn(flight, now_us, after_repeat=after_repeat):
                through.append(flight)
        self._note_overtaken(through)
        return news

    def _learn(self, flight: _Flight, now_us: int, *, after_repeat: bool) -> bool:
        """Take the round trip's length; False if nobody knows which transmission it was of.

        after_repeat: a repeated packet is acknowledged with it. It may have come long before, and the acknowledgement
        that told so may have been lost (Linux takes no sample either: FLAG_RETRANS_DATA_ACKED).
        """
        round_trip_us = now_us - flight.sent_us
        if flight.repeated:
            return self._least_us is not None and round_trip_us >= self._least_us
        if not after_repeat:
            self._timeout.sample(round_trip_us)
        self._least_us = round_trip_us if self._least_us is None else min(self._least_us, round_trip_us)
        return True

    def _note_overtaken(self, through: Sequence[_Flight]) -> None:
        """Count for earlier transmissions that these have got through."""
        if not through:
            return
        last = max(through, key=lambda flight: flight.order)
        overtaken = [flight for flight in self._flights.values() if flight.order < last.order]
        # Nothing will be sent whose acknowledgement could tell more.
        all_overtaken = not self._may_send_new and len(overtaken) == len(self._flights) <= LOST_AFTER
        for flight in overtaken:
            flight.overtaken += sum(later.order > flight.order for later in through)
            long_before = flight.sent_us + self._base_us <= last.sent_us
            flight.lost = flight.lost or all_overtaken or long_before or flight.overtaken >= LOST_AFTER
