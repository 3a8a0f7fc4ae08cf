"""A worker's side of a round: which fragment goes out when, until every global sum is there. No sockets.

The caller passes in the time and moves the packets. Fragments are sent in order, at most `window_fragments`
of them unanswered at a time. One that is unanswered is sent again, marked RESEND, when its timer runs out, or
sooner: when several that were sent after it on the same path have been answered (RFC 5681, RFC 6675), or when
all have been (RFC 5827). That holds for resends, too. Paths are told apart since packets keep their order only
among those that meet at the same designated switch.

Until a round's first answer nobody knows whether the other workers have begun. So long only the oldest fragment
has a timer, as TCP has one for all its segments; then each has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hosts.transport.packet_numbers import forward_distance
from hosts.transport.round_trips import RoundTrips
from hosts.transport.statistics import SenderStatistics

EARLY_RESEND_AFTER = 3
"""Later transmissions answered on the same path before a fragment counts as lost (RFC 5681's DupThresh)."""


@dataclass(frozen=True)
class Transmission:
    """A fragment to send now."""

    fragment: int
    """Index within the round."""
    resend: bool


@dataclass
class _Flight:
    """A fragment that waits for its global sum."""

    path: int
    first_order: int
    """Its first transmission's place among all transmissions."""
    order: int
    """Its latest transmission's place."""
    first_sent_us: int
    sent_us: int
    timeouts: int = 0
    later_answers: int = 0
    lost: bool = False
    """Overtaken often enough: to be sent again at once."""


class Sender:
    """Windows, timers and resends of one worker; `begin` starts each round."""

    def __init__(self, *, window_fragments: int, min_timeout_us: int, paths: int = 1) -> None:
        self._window_fragments = window_fragments
        self._paths = paths
        self._round_trips = RoundTrips(min_timeout_us)
        self._first_number = 0
        self._count = 0
        self._next = 0
        self._order = 0
        self._flights: dict[int, _Flight] = {}
        self._answered: list[bool] = []
        self.statistics = SenderStatistics()

    def begin(self, first_number: int, count: int, now_us: int) -> None:
        """Start a round of `count` fragments, the first with packet number `first_number`."""
        if not self.finished:
            raise RuntimeError("a round begins before the one before it has ended")
        self._first_number = first_number
        self._count = count
        self._next = 0
        self._answered = [False] * count
        self._round_trips.begin(now_us)

    @property
    def finished(self) -> bool:
        """All fragments of the round are answered."""
        return self._next == self._count and not self._flights

    @property
    def missing(self) -> int:
        """Fragments of the round without a global sum."""
        return self._count - self._next + len(self._flights)

    @property
    def _may_send_new(self) -> bool:
        return self._next < self._count and len(self._flights) < self._window_fragments

    def transmissions(self, now_us: int) -> list[Transmission]:
        """What to send now, resends first; counts as sent."""
        out = []
        for fragment, flight in self._flights.items():
            if flight.lost:
                self.statistics.early_resends += 1
                out.append(self._resend(fragment, flight, now_us))
        for fragment, flight in self._timed():
            if self._deadline_us(flight) <= now_us:
                self.statistics.timeout_resends += 1
                flight.timeouts += 1
                out.append(self._resend(fragment, flight, now_us))
        while self._may_send_new:
            self._flights[self._next] = _Flight(
                path=(self._first_number + self._next) % self._paths,
                first_order=self._order,
                order=self._order,
                first_sent_us=now_us,
                sent_us=now_us,
            )
            out.append(Transmission(self._next, resend=False))
            self._order += 1
            self._next += 1
        return out

    def _resend(self, fragment: int, flight: _Flight, now_us: int) -> Transmission:
        flight.order = self._order
        flight.sent_us = now_us
        flight.later_answers = 0
        flight.lost = False
        self._order += 1
        return Transmission(fragment, resend=True)

    def _timed(self) -> list[tuple[int, _Flight]]:
        """Fragments whose timers run, oldest first."""
        flights = list(self._flights.items())
        return flights if self._round_trips.all_have_begun else flights[:1]

    def _deadline_us(self, flight: _Flight) -> int:
        # Computed anew each time, so that a fresh sample moves the timers that run.
        return self._round_trips.deadline_us(
            flight.sent_us,
            timeouts=flight.timeouts,
            resent=flight.order != flight.first_order,
            unanswered=len(self._flights),
        )

    @property
    def deadline_us(self) -> int | None:
        """When `transmissions` has something to send at the latest; None: only an answer can bring that about."""
        if self._may_send_new or any(flight.lost for flight in self._flights.values()):
            return 0
        return min((self._deadline_us(flight) for _, flight in self._timed()), default=None)

    def answer(
        self, packet_numbers: Sequence[int], after_resends: Sequence[bool], now_us: int
    ) -> list[tuple[int, int]]:
        """Take in a batch of global sums.

        after_resends: whether each was marked as made complete, or asked for, by a resend of any worker.
        Returns (position in the batch, fragment) for those that are news. Repeats, other rounds' numbers and
        fragments that were never sent change nothing but the statistics.
        """
        news = []
        for position, (number, after_resend) in enumerate(zip(packet_numbers, after_resends, strict=True)):
            fragment = forward_distance(self._first_number, number)
            if fragment >= self._next:
                self.statistics.stale_answers += 1
                continue
            if self._answered[fragment]:
                self.statistics.duplicate_answers += 1
                continue
            self._answered[fragment] = True
            self._learn(self._flights.pop(fragment), after_resend, now_us)
            news.append((position, fragment))
        return news

    def _learn(self, answered: _Flight, after_resend: bool, now_us: int) -> None:
        if not self._round_trips.all_have_begun:
            for flight in self._flights.values():
                flight.timeouts = 0  # a probe's say nothing about losses
        self._round_trips.answer(answered.first_sent_us, now_us, after_resend=after_resend)
        # An answer that came sooner than any round trip cannot be due to the latest transmission.
        least_us = self._round_trips.least_us
        latest = after_resend and least_us is not None and now_us - answered.sent_us >= least_us
        self._note_overtaken(answered.path, answered.order if latest else answered.first_order)

    def _note_overtaken(self, path: int, order: int) -> None:
        """A transmission with place `order` has got through: count that for those sent before it on its path."""
        on_path = [flight for flight in self._flights.values() if flight.path == path]
        overtaken = [flight for flight in on_path if flight.order < order]
        all_overtaken = self._next == self._count and len(overtaken) == len(on_path)
        for flight in overtaken:
            flight.later_answers += 1
            if all_overtaken or flight.later_answers >= EARLY_RESEND_AFTER:
                flight.lost = True
