"""A worker's side of a round: which fragment goes out when, until every global sum is there. No sockets.

The caller passes in the time and moves the packets. Fragments are sent in order, as many of them on their way as the
congestion window allows. One that is unacknowledged is sent again when its timer runs out, or sooner: when several
that were sent after it on the same path have been acknowledged (RFC 5681, RFC 6675), or all have been (RFC 5827).
That holds for repeated transmissions, too. Fragments whose timers have backed off share one and take turns; a sum
that is news brings their own ones back, as a fresh sample does in RFC 6298. Paths are told apart since
packets keep their order only among those that meet at the same designated switches (hosts.systems.aggregation.paths).

What is sent again goes to the designated switch as a RETRY at first: if this worker's gradient is what the slot waits
for, it completes the sum there, and if it is not, the switch drops it, so a loss costs the server's link nothing.
Only when that has not helped several times does a RESEND make the switch give up its sum to the server. When the
server asks for a fragment it gets a direct copy, past all switches.

Until a round's first ACK nobody knows whether the other workers have begun. So long only the oldest fragment
has a timer, as TCP has one for all its segments; then each has its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from formats.aggregation import Flags
from hosts.systems.aggregation.statistics import SenderStatistics
from hosts.transport.congestion_window import CongestionControl, CongestionWindow
from hosts.transport.packet_numbers import PACKET_NUMBERS, forward_distance
from hosts.transport.retransmission_timeout import CONSTANT_TIMEOUTS
from hosts.transport.round_trips import RoundTrips

EARLY_RESEND_AFTER = 3
"""Later transmissions acknowledged on the same path before a fragment counts as lost (RFC 5681's DupThresh)."""
RETRIES = 3
"""How often a fragment is sent again before switches are told to give up its sum."""


class Attempt(Enum):
    """How a fragment is sent; `flags`: of the gradient packet."""

    FIRST = ("first", 0)
    LATE = ("late", Flags.LATE)
    """For the first time, less than a window after a timer that may have held it up: how long others wait for its
    sum tells them nothing."""
    RETRY = ("retry", Flags.RETRY)
    """Again, as if it were the first time."""
    RESEND = ("resend", Flags.RESEND)
    """Again, and the designated switch gives up what it has."""
    DIRECT = ("direct", Flags.RESEND)
    """Past all switches, since the server asked for it."""

    def __init__(self, label: str, flags: int) -> None:
        self.flags = int(flags)


# In Python 3.11 a look into an enumeration costs as much as a call.
_FIRST, _LATE = Attempt.FIRST, Attempt.LATE


class Transmission(NamedTuple):
    """A fragment to send now."""

    fragment: int
    """Index within the round."""
    attempt: Attempt


@dataclass(slots=True)
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
    repeats: int = 0
    """Transmissions after the first that the server did not ask for."""
    later_acks: int = 0
    lost: bool = False
    """Overtaken often enough: to be sent again at once."""
    requested: bool = False
    """By the server."""

    @property
    def backed_off(self) -> bool:
        """Its timer is longer than at first."""
        return self.timeouts >= CONSTANT_TIMEOUTS


class Sender:
    """Windows, timers and repeated transmissions of one worker; `begin` starts each round."""

    def __init__(
        self,
        *,
        window_fragments: int,
        min_timeout_us: int,
        paths: Sequence[int] = (0,),
        congestion_control: CongestionControl = "aimd",
        sliding: bool = False,
        retries: int = RETRIES,
    ) -> None:
        """window_fragments: the window's maximum. paths: the paths that packet numbers take in turn: number n
        goes paths[n % len(paths)]. sliding: unacknowledged fragments are never window_fragments or more apart.
        retries: 0 makes all that is sent again a RESEND."""
        self._window = CongestionWindow(window_fragments, congestion_control)
        self._maximum_fragments = window_fragments
        self._span_fragments = window_fragments if sliding else None
        self._paths = tuple(paths)
        self._retries = retries
        self._round_trips = RoundTrips(min_timeout_us)
        self._first_number = 0
        self._count = 0
        self._next = 0
        self._order = 0
        self._flights: dict[int, _Flight] = {}  # in the order of fragments
        self._repeated: set[int] = set()
        """Those among them that were sent more than once."""
        self._marked: set[int] = set()
        """Those among them that are lost or asked for."""
        self._acknowledged: list[bool] = []
        self._requested_ahead: set[int] = set()
        self._probed_us = 0
        """When a fragment was sent whose timer has backed off."""
        self._late_below = 0
        """Fragments that others may have sent long ago, while a timer held up this worker's window."""
        self.statistics = SenderStatistics(window=self._window.statistics)

    def begin(self, first_number: int, count: int, now_us: int) -> None:
        """Start a round of `count` fragments, the first with packet number `first_number`."""
        if not self.finished:
            raise RuntimeError("a round begins before the one before it has ended")
        self._first_number = first_number
        self._count = count
        self._next = 0
        self._acknowledged = [False] * count
        self._requested_ahead.clear()
        self._late_below = 0
        self._round_trips.begin(now_us)

    @property
    def finished(self) -> bool:
        """All fragments of the round are acknowledged."""
        return self._next == self._count and not self._flights

    @property
    def missing(self) -> int:
        """Fragments of the round without a global sum."""
        return self._count - self._next + len(self._flights)

    @property
    def _sendable(self) -> int:
        """How many fragments may be sent now that have not been sent before."""
        flying = len(self._flights)
        # What is under repair mostly waits for some other worker's packet, not for one of ours on its way (the pipe
        # of RFC 6675): a window that losses have made small goes on. A probe repairs nothing.
        under_repair = len(self._repeated) if self._round_trips.all_have_begun else 0
        room = min(
            self._count - self._next,
            self._maximum_fragments - flying,
            self._window.fragments - (flying - under_repair),
        )
        if self._span_fragments is not None and flying:
            room = min(room, next(iter(self._flights)) + self._span_fragments - self._next)
        return max(0, room)

    def transmissions(self, now_us: int) -> list[Transmission]:
        """What to send now, repeated ones first; counts as sent."""
        out = []
        for fragment in sorted(self._marked):
            flight = self._flights[fragment]
            if flight.requested:
                self.statistics.direct_copies += 1
                out.append(self._again(fragment, flight, Attempt.DIRECT, now_us))
            else:
                self.statistics.early_resends += 1
                self._window.lost(flight.order, next_order=self._order)
                out.append(self._repeat(fragment, flight, now_us))
        for fragment, flight in self._timed_out(now_us):
            self.statistics.timeout_resends += 1
            if self._round_trips.all_have_begun:
                self._window.lost(flight.order, next_order=self._order)
            if flight.backed_off:
                self._probed_us = now_us
            flight.timeouts += 1
            out.append(self._repeat(fragment, flight, now_us))
        out += self._send_new(self._sendable, now_us)
        return out

    def _send_new(self, count: int, now_us: int) -> list[Transmission]:
        out = []
        paths, first_number, order = self._paths, self._first_number, self._order
        for fragment in range(self._next, self._next + count):
            path = paths[(first_number + fragment) % len(paths)]
            self._flights[fragment] = _Flight(path, order, order, now_us, now_us)
            order += 1
            if fragment in self._requested_ahead:
                self.statistics.direct_copies += 1
                out.append(Transmission(fragment, Attempt.DIRECT))
            else:
                out.append(Transmission(fragment, _LATE if fragment < self._late_below else _FIRST))
        self._order = order
        self._next += count
        return out

    def _repeat(self, fragment: int, flight: _Flight, now_us: int) -> Transmission:
        attempt = Attempt.RETRY if flight.repeats < self._retries else Attempt.RESEND
        self.statistics.given_up += attempt is Attempt.RESEND
        flight.repeats += 1
        if flight.timeouts:
            self._late_below = self._next + self._window.fragments
        return self._again(fragment, flight, attempt, now_us)

    def _again(self, fragment: int, flight: _Flight, attempt: Attempt, now_us: int) -> Transmission:
        self._repeated.add(fragment)
        self._marked.discard(fragment)
        flight.order = self._order
        flight.sent_us = now_us
        flight.later_acks = 0
        flight.lost = False
        flight.requested = False
        self._order += 1
        return Transmission(fragment, attempt)

    def _sent_once_in_order(self) -> Iterator[tuple[int, _Flight]]:
        """Fragments that have been sent once: the one that was sent first comes first."""
        if not self._repeated:
            return iter(self._flights.items())
        return (item for item in self._flights.items() if item[0] not in self._repeated)

    def _timed_out(self, now_us: int) -> list[tuple[int, _Flight]]:
        """Fragments whose timers have run out, in order."""
        if not self._round_trips.all_have_begun:
            # Only the first one's timer runs.
            return [
                item for item in itertools.islice(self._flights.items(), 1) if self._deadline_us(item[1]) <= now_us
            ]
        due = [fragment for fragment in self._timed_again() if self._deadline_us(self._flights[fragment]) <= now_us]
        for fragment, flight in self._sent_once_in_order():
            if self._deadline_us(flight) > now_us:
                break
            due.append(fragment)
        return [(fragment, self._flights[fragment]) for fragment in sorted(due)]

    def _timed_again(self) -> Iterator[int]:
        """Repeated fragments whose timers run: of those that have backed off the one that was sent longest ago."""
        waiting: list[int] = []
        for fragment in self._repeated:
            if self._flights[fragment].backed_off:
                waiting.append(fragment)
            else:
                yield fragment
        if waiting:
            yield min(waiting, key=lambda fragment: self._flights[fragment].order)

    def _deadline_us(self, flight: _Flight) -> int:
        # Computed anew each time, so that a fresh sample moves the timers that run.
        return self._round_trips.deadline_us(
            max(flight.sent_us, self._probed_us) if flight.backed_off else flight.sent_us,
            timeouts=flight.timeouts,
            resent=flight.order != flight.first_order,
            unacknowledged=len(self._flights),
        )

    @property
    def deadline_us(self) -> int | None:
        """When `transmissions` has something to send at the latest; None: only an ACK can bring that about."""
        if self._marked or self._sendable:
            return 0
        if self._round_trips.all_have_begun:
            timed = [self._flights[fragment] for fragment in self._timed_again()]
            timed += [flight for _, flight in itertools.islice(self._sent_once_in_order(), 1)]
        else:
            timed = list(itertools.islice(self._flights.values(), 1))
        return min(map(self._deadline_us, timed), default=None)

    def acknowledge(
        self,
        packet_numbers: Sequence[int],
        after_resends: Sequence[bool],
        now_us: int,
        congested: Sequence[bool] | None = None,
    ) -> list[tuple[int, int]]:
        """Take in a batch of global sums.

        after_resends: whether each was marked as made complete, or asked for, by a repeated packet of any worker.
        congested: whether each, or a packet in its sum, met a long queue. Returns (position in the batch, fragment)
        for those that are news. Repeats, other rounds' numbers and fragments that were never sent change nothing
        but the statistics.
        """
        news = []
        first_number, sent, acknowledged = self._first_number, self._next, self._acknowledged
        limiting = sent < self._count
        for position, (number, after_resend) in enumerate(zip(packet_numbers, after_resends, strict=True)):
            fragment = (number - first_number) % PACKET_NUMBERS
            if fragment >= sent:
                self.statistics.stale_acks += 1
                continue
            if acknowledged[fragment]:
                self.statistics.duplicate_acks += 1
                continue
            acknowledged[fragment] = True
            flight = self._flights.pop(fragment)
            if self._repeated:
                self._repeated.discard(fragment)
            if self._marked:
                self._marked.discard(fragment)
            self._window.acknowledged(
                flight.first_order,
                next_order=self._order,
                marked=congested is not None and congested[position],
                limiting=limiting,
            )
            self._learn(flight, after_resend, now_us)
            news.append((position, fragment))
        if news:
            for fragment in self._repeated:
                flight = self._flights[fragment]
                flight.timeouts = min(flight.timeouts, CONSTANT_TIMEOUTS - 1)
        return news

    def request(self, packet_numbers: Sequence[int]) -> None:
        """The server asks for these fragments alone. One that has not been sent yet will go directly, too."""
        for number in packet_numbers:
            fragment = forward_distance(self._first_number, number)
            if fragment >= self._count or self._acknowledged[fragment]:
                self.statistics.stale_requests += 1
            elif fragment in self._flights:
                self._flights[fragment].requested = True
                self._marked.add(fragment)
            else:
                self._requested_ahead.add(fragment)

    def _learn(self, acknowledged: _Flight, after_resend: bool, now_us: int) -> None:
        if not self._round_trips.all_have_begun:
            for flight in self._flights.values():
                flight.timeouts = 0  # a probe's say nothing about losses
                flight.repeats = 0
        self._round_trips.acknowledged(acknowledged.first_sent_us, now_us, after_resend=after_resend)
        latest = False
        if after_resend:
            # An ACK that came sooner than any round trip cannot be due to the latest transmission.
            least_us = self._round_trips.least_us
            latest = least_us is not None and now_us - acknowledged.sent_us >= least_us
        self._note_overtaken(acknowledged.path, acknowledged.order if latest else acknowledged.first_order)

    def _note_overtaken(self, path: int, order: int) -> None:
        """A transmission with place `order` has got through: count that for those sent before it on its path."""
        if not self._repeated and (not self._flights or next(iter(self._flights.values())).order >= order):
            return  # The usual case: it was the oldest.
        overtaken = [item for item in self._sent_before(order) if item[1].path == path]
        if not overtaken:
            return
        # Nothing will be sent whose ACK could tell more.
        stuck = not self._sendable and len(self._flights) <= EARLY_RESEND_AFTER
        all_overtaken = (stuck or self._next == self._count) and len(overtaken) == sum(
            flight.path == path for flight in self._flights.values()
        )
        for fragment, flight in overtaken:
            flight.later_acks += 1
            if all_overtaken or flight.later_acks >= EARLY_RESEND_AFTER:
                flight.lost = True
                self._marked.add(fragment)

    def _sent_before(self, order: int) -> list[tuple[int, _Flight]]:
        """Fragments whose latest transmission was made before the one with place `order`."""
        repeated = [(fragment, self._flights[fragment]) for fragment in self._repeated]
        found = [item for item in repeated if item[1].order < order]
        for item in self._sent_once_in_order():
            if item[1].order >= order:
                break
            found.append(item)
        return found
