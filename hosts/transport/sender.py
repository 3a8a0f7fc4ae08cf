"""A worker's side of a round: which fragment goes out when, until every global sum is there. No sockets.

The caller passes in the time and moves the packets. Fragments are sent in order, at most `window_fragments`
of them unanswered at a time. One that is unanswered is sent again, marked RESEND, when its timer runs out, or
sooner: when several that were sent after it on the same path have been answered (as in TCP's fast
retransmission, RFC 5681 and RFC 6675). Paths are told apart since packets keep their order only among those
that meet at the same designated switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hosts.transport.packet_numbers import forward_distance
from hosts.transport.retransmission_timeout import RetransmissionTimeout
from hosts.transport.statistics import SenderStatistics

EARLY_RESEND_AFTER = 3
"""Later fragments answered on the same path before a fragment counts as lost (RFC 5681's DupThresh)."""


@dataclass(frozen=True)
class Transmission:
    """A fragment to send now."""

    fragment: int
    """Index within the round."""
    resend: bool


@dataclass
class _Flight:
    """A fragment that waits for its global sum."""

    first_order: int
    """Its first transmission's place among all transmissions."""
    order: int
    """Its latest transmission's place."""
    sent_us: int
    sendings: int = 1
    timeouts: int = 0
    inherited_backoff: int = 0
    later_answers: int = 0

    @property
    def backoff(self) -> int:
        return max(self.timeouts, self.inherited_backoff)


class Sender:
    """Windows, timers and resends of one worker; `begin` starts each round."""

    def __init__(self, *, window_fragments: int, min_timeout_us: int, paths: int = 1) -> None:
        self._window_fragments = window_fragments
        self._paths = paths
        self._timeout = RetransmissionTimeout(min_timeout_us)
        self._first_number = 0
        self._count = 0
        self._next = 0
        self._order = 0
        self._flights: dict[int, _Flight] = {}
        self._lost: list[int] = []
        self._answered: list[bool] = []
        self.statistics = SenderStatistics()

    def begin(self, first_number: int, count: int) -> None:
        """Start a round of `count` fragments, the first with packet number `first_number`."""
        if not self.finished:
            raise RuntimeError("a round begins before the one before it has ended")
        self._first_number = first_number
        self._count = count
        self._next = 0
        self._answered = [False] * count

    @property
    def finished(self) -> bool:
        """All fragments of the round are answered."""
        return self._next == self._count and not self._flights

    @property
    def missing(self) -> int:
        """Fragments of the round without a global sum."""
        return self._count - self._next + len(self._flights)

    def transmissions(self, now_us: int) -> list[Transmission]:
        """What to send now, resends first; counts as sent."""
        out = []
        for fragment in self._lost:
            self.statistics.early_resends += 1
            out.append(self._resend(fragment, self._flights[fragment], now_us))
        self._lost.clear()
        for fragment, flight in self._flights.items():
            if self._deadline_us(flight) <= now_us:
                self.statistics.timeout_resends += 1
                flight.timeouts = flight.backoff + 1
                self._timeout.backoff = max(self._timeout.backoff, flight.timeouts)
                out.append(self._resend(fragment, flight, now_us))
        while self._next < self._count and len(self._flights) < self._window_fragments:
            self._flights[self._next] = _Flight(
                first_order=self._order,
                order=self._order,
                sent_us=now_us,
                inherited_backoff=self._timeout.backoff,
            )
            out.append(Transmission(self._next, resend=False))
            self._order += 1
            self._next += 1
        return out

    def _resend(self, fragment: int, flight: _Flight, now_us: int) -> Transmission:
        flight.order = self._order
        flight.sent_us = now_us
        flight.sendings += 1
        self._order += 1
        return Transmission(fragment, resend=True)

    def _deadline_us(self, flight: _Flight) -> int:
        # Computed anew each time, so that a fresh round-trip sample shortens the timers that run.
        return flight.sent_us + self._timeout.timeout_us(flight.backoff)

    @property
    def deadline_us(self) -> int | None:
        """When `transmissions` has something to send at the latest; None: only an answer can bring that about."""
        if self._lost or (self._next < self._count and len(self._flights) < self._window_fragments):
            return 0
        return min(map(self._deadline_us, self._flights.values()), default=None)

    def answer(self, packet_numbers: Sequence[int], now_us: int) -> list[tuple[int, int]]:
        """Take in the packet numbers of a batch of global sums.

        Returns (position in the batch, fragment) for those that are news. Repeats, other rounds' numbers and
        fragments that were never sent change nothing but the statistics.
        """
        news = []
        for position, number in enumerate(packet_numbers):
            fragment = forward_distance(self._first_number, number)
            if fragment >= self._next:
                self.statistics.stale_answers += 1
                continue
            if self._answered[fragment]:
                self.statistics.duplicate_answers += 1
                continue
            self._answered[fragment] = True
            flight = self._flights.pop(fragment)
            if fragment in self._lost:
                self._lost.remove(fragment)
            if flight.sendings == 1:
                self._timeout.sample(now_us - flight.sent_us)
                for other in self._flights.values():
                    other.inherited_backoff = 0
            self._mark_overtaken(fragment, flight)
            news.append((position, fragment))
        return news

    def _mark_overtaken(self, fragment: int, answered: _Flight) -> None:
        """Count the answer for the fragments sent before it on its path; enough of them make a loss.

        The first transmission's order is used for the answered fragment, since nobody knows which transmission
        was answered. A fragment is resent early once; after that its timer decides.
        """
        path = (self._first_number + fragment) % self._paths
        for other, flight in self._flights.items():
            if flight.sendings > 1 or flight.order > answered.first_order:
                continue
            if (self._first_number + other) % self._paths != path:
                continue
            flight.later_answers += 1
            if flight.later_answers == EARLY_RESEND_AFTER:
                self._lost.append(other)
