"""draft"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from hosts.transport.packet_numbers import forward_distance
from hosts.transport.round_trips import RoundTrips
from hosts.transport.statistics import SenderStatistics

EARLY_RESEND_AFTER = 3
LIN = int(os.environ.get("LIN", "0"))
KP = int(os.environ.get("KP", "8"))
from collections import Counter
STAT = Counter()
V = set(os.environ.get("V", "").split(","))


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
    order: int
    sent_us: int
    first_sent_us: int
    path: int
    sendings: int = 1
    timeouts: int = 0
    inherited_backoff: int = 0
    later_answers: int = 0

    @property
    def backoff(self) -> int:
        return max(0, max(self.timeouts, self.inherited_backoff) - LIN)


class Sender:
    def __init__(self, *, window_fragments: int, min_timeout_us: int, paths: int = 1) -> None:
        self._window_fragments = window_fragments
        self._paths = paths
        self._round_trips = RoundTrips(min_timeout_us)
        self._first_number = 0
        self._count = 0
        self._next = 0
        self._order = 0
        self._flights: dict[int, _Flight] = {}
        self._lost: list[int] = []
        self._answered: list[bool] = []
        self.statistics = SenderStatistics()

    def begin(self, first_number: int, count: int) -> None:
        if not self.finished:
            raise RuntimeError("a round begins before the one before it has ended")
        self._first_number = first_number
        self._count = count
        self._next = 0
        self._answered = [False] * count

    @property
    def finished(self) -> bool:
        return self._next == self._count and not self._flights

    @property
    def missing(self) -> int:
        return self._count - self._next + len(self._flights)

    def transmissions(self, now_us: int) -> list[Transmission]:
        out = []
        if self._next == 0:
            self._round_trips.begin(now_us)
        for fragment in self._lost:
            self.statistics.early_resends += 1
            out.append(self._resend(fragment, self._flights[fragment], now_us))
        self._lost.clear()
        estimator = self._estimator
        for fragment, flight in self._timed():
            if self._deadline_us(flight) <= now_us:
                self.statistics.timeout_resends += 1
                flight.timeouts = max(flight.timeouts, flight.inherited_backoff) + 1
                estimator.backoff = max(estimator.backoff, flight.timeouts)
                out.append(self._resend(fragment, flight, now_us))
        while self._next < self._count and len(self._flights) < self._window_fragments:
            self._flights[self._next] = _Flight(
                first_order=self._order,
                order=self._order,
                sent_us=now_us,
                first_sent_us=now_us,
                path=(self._first_number + self._next) % self._paths,
                inherited_backoff=0,
            )
            out.append(Transmission(self._next, resend=False))
            self._order += 1
            self._next += 1
        return out

    @property
    def _estimator(self):
        return self._round_trips.fragments

    def _timed(self):
        if self._round_trips.all_have_begun:
            return self._flights.items()
        return list(self._flights.items())[:1]

    def _resend(self, fragment: int, flight: _Flight, now_us: int) -> Transmission:
        flight.order = self._order
        flight.sent_us = now_us
        flight.sendings += 1
        flight.later_answers = 0
        self._order += 1
        return Transmission(fragment, resend=True)

    def _deadline_us(self, flight: _Flight) -> int:
        k = 1 if self._round_trips.all_have_begun else min(KP, len(self._flights))
        t = min(k * self._estimator.timeout_us(flight.backoff), 2000000)
        return self._round_trips.counts_from_us(flight.sent_us) + t

    @property
    def deadline_us(self) -> int | None:
        if self._lost or (self._next < self._count and len(self._flights) < self._window_fragments):
            return 0
        return min((self._deadline_us(flight) for _, flight in self._timed()), default=None)

    def answer(self, packet_numbers: Sequence[int], resent: Sequence[bool], now_us: int) -> list[tuple[int, int]]:
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
            clean = not resent[position]
            if not self._round_trips.all_have_begun:
                self._round_trips.first_answer(now_us, resent=not clean)
                for other in self._flights.values():
                    other.timeouts = 0
                    other.inherited_backoff = 0
            if clean:
                self._round_trips.sample(flight.first_sent_us, now_us)
            if "news" in V:
                for other in self._flights.values():
                    other.timeouts = 0
            self._mark_overtaken(flight, now_us, resent[position])
            news.append((position, fragment))
        return news

    def _mark_overtaken(self, answered: _Flight, now_us: int, resent: bool) -> None:
        least_us = self._round_trips.least_us
        order = answered.order
        if answered.sendings > 1 and (not resent or "oldorder" in V or least_us is None or now_us - answered.sent_us < least_us):
            order = answered.first_order
        last = self._next == self._count and "notail" not in V
        for flight in self._flights.values():
            if flight.path == answered.path and flight.order > order:
                last = False
        wait = self._round_trips.fragments._smoothed_us if "srtt" in V else (self._round_trips.fragments.timeout_us() if "rto" in V else 0)
        wait = wait or 0
        for other, flight in self._flights.items():
            if flight.sendings > 1 and now_us - flight.sent_us < wait:
                continue
            if flight.path != answered.path or flight.order > order or other in self._lost:
                continue
            if "once" in V and flight.sendings > 1:
                continue
            flight.later_answers += 1
            if flight.later_answers >= EARLY_RESEND_AFTER or last:
                self._lost.append(other)
                STAT[("tail" if flight.later_answers < 3 else "3", min(flight.sendings, 5))] += 1
