"""What the sender does (hosts/systems/aggregation/worker/sender.h), once more, in Python: the two are compared.

The caller passes in the time and moves the packets. Fragments are sent in order, as many of them on their way as the
congestion window allows. One that is unacknowledged is sent again when its timer runs out, or sooner: when several
that were sent after it on the same path have been acknowledged (RFC 5681, RFC 6675), or all have been (RFC 5827).
That holds for repeated transmissions, too. Fragments whose timers have backed off share one and take turns; a sum
that is news brings their own ones back, as a fresh sample does in RFC 6298. Paths are told apart since
packets keep their order only among those that meet at the same designated switches
(gradbed.hosts.systems.aggregation.config).

What is sent again goes to the designated switch as a RETRY at first: if this worker's gradient is what the slot waits
for, it completes the sum there, and if it is not, the switch drops it, so a loss costs the server's link nothing.
Only when that has not helped several times does a RESEND make the switch give up its sum to the server. When the
server asks for a fragment it gets a direct copy, past all switches.

Until a round's first ACK nobody knows whether the other workers have begun. So long only the oldest fragment
has a timer, as TCP has one for all its segments; then each has its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from gradbed.hosts.systems.aggregation.statistics import SenderStatistics
from gradbed.hosts.systems.aggregation.worker.sender import RETRIES, Attempt, Transmission
from gradbed.hosts.transport.retransmission_timeout import CONSTANT_TIMEOUTS
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, forward_distance
from tests.unit.hosts.aggregation.worker.reference.round_trips import RoundTrips
from tests.unit.hosts.transport.reference.congestion_window import CongestionWindow
from tests.unit.hosts.transport.reference.stream_sender import randomised_us

EARLY_RESEND_AFTER = 3
"""Later transmissions acknowledged on the same path before a fragment counts as lost (RFC 5681's DupThresh)."""
_FIRST, _LATE = Attempt.FIRST, Attempt.LATE


class _Columns:
    """What is known of a round's fragments; lists, by fragment."""

    def __init__(self, paths: list[int]) -> None:
        """paths: of each fragment."""
        count = len(paths)
        self.path = paths
        self.first_order = [0] * count
        """The first transmission's place among all transmissions."""
        self.order = [0] * count
        """The latest transmission's place."""
        self.first_sent_us = [0] * count
        self.sent_us = [0] * count
        self.timeouts = [0] * count
        self.repeats = [0] * count
        """Transmissions after the first that the server did not ask for."""
        self.later_acks = [0] * count
        self.acknowledged = [False] * count

    def forget_probes(self) -> None:
        """They say nothing about losses."""
        self.timeouts = [0] * len(self.timeouts)
        self.repeats = [0] * len(self.repeats)


class Sender:
    """Windows, timers and repeated transmissions of one worker; `begin` starts each round."""

    def __init__(
        self,
        *,
        window_fragments: int,
        min_timeout_us: int,
        paths: Sequence[int] = (0,),
        congestion_control: str = "aimd",
        span_fragments: int | None = None,
        retries: int = RETRIES,
        seed: int = 0,
    ) -> None:
        """window_fragments: the window's maximum. paths: the paths that packet numbers take in turn: number n
        goes paths[n % len(paths)]. span_fragments: unacknowledged fragments are never so many or more apart.
        retries: 0 makes all that is sent again a RESEND."""
        self._window = CongestionWindow(window_fragments, congestion_control)
        self._maximum_fragments = window_fragments
        self._span_fragments = span_fragments
        self._paths = tuple(paths)
        self._retries = retries
        self._seed = seed
        self._round_trips = RoundTrips(min_timeout_us)
        self._first_number = 0
        self._count = 0
        self._next = 0
        self._order = 0
        self._columns = _Columns([])
        # Those that wait for their global sums, in the order in which they were sent last. Two, since timers of each
        # run out in that order; dictionaries without values, since sets have no order.
        self._sent_once: dict[int, None] = {}
        self._sent_again: dict[int, None] = {}
        self._some_backed_off = False
        """There may be some whose timer has backed off."""
        self._marked: set[int] = set()
        """Those among them that are lost (overtaken often enough: to be sent again at once) or asked for."""
        self._requested: set[int] = set()
        """Those among the marked that the server asked for."""
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
        turn = first_number % len(self._paths)
        self._columns = _Columns(list(itertools.islice(itertools.cycle(self._paths), turn, turn + count)))
        self._some_backed_off = False
        self._requested_ahead.clear()
        self._late_below = 0
        self._round_trips.begin(now_us)

    @property
    def finished(self) -> bool:
        """All fragments of the round are acknowledged."""
        return self._next == self._count and not self._unacknowledged

    @property
    def missing(self) -> int:
        """Fragments of the round without a global sum."""
        return self._count - self._next + self._unacknowledged

    @property
    def _unacknowledged(self) -> int:
        """Fragments that have been sent and wait for their global sums."""
        return len(self._sent_once) + len(self._sent_again)

    @property
    def _oldest(self) -> int | None:
        """The first fragment that waits; None: none does."""
        return min((*itertools.islice(self._sent_once, 1), *self._sent_again), default=None)

    @property
    def _sendable(self) -> int:
        """How many fragments may be sent now that have not been sent before."""
        waiting = self._unacknowledged
        # What is under repair mostly waits for some other worker's packet, not for one of ours on its way (the pipe
        # of RFC 6675): a window that losses have made small goes on. A probe repairs nothing.
        flying = len(self._sent_once) if self._round_trips.all_have_begun else waiting
        room = min(self._count - self._next, self._maximum_fragments - waiting, self._window.fragments - flying)
        if self._span_fragments is not None and (oldest := self._oldest) is not None:
            room = min(room, oldest + self._span_fragments - self._next)
        return max(0, room)

    def transmissions(self, now_us: int) -> list[Transmission]:
        """What to send now, repeated ones first; counts as sent."""
        out = []
        for fragment in sorted(self._marked):
            if fragment in self._requested:
                self.statistics.direct_copies += 1
                out.append(self._again(fragment, Attempt.DIRECT, now_us))
            else:
                self.statistics.early_resends += 1
                self._window.lost(self._columns.order[fragment], next_order=self._order)
                out.append(self._repeat(fragment, now_us))
        for fragment in self._timed_out(now_us):
            self.statistics.timeout_resends += 1
            if self._round_trips.all_have_begun:
                self._window.lost(self._columns.order[fragment], next_order=self._order)
            if self._has_backed_off(fragment):
                self._probed_us = now_us
            self._columns.timeouts[fragment] += 1
            self._some_backed_off |= self._has_backed_off(fragment)
            out.append(self._repeat(fragment, now_us))
        return out + self._send_new(self._sendable, now_us)

    def _send_new(self, count: int, now_us: int) -> list[Transmission]:
        columns, start, end = self._columns, self._next, self._next + count
        self._sent_once.update(dict.fromkeys(range(start, end)))
        columns.first_order[start:end] = columns.order[start:end] = range(self._order, self._order + count)
        columns.first_sent_us[start:end] = columns.sent_us[start:end] = [now_us] * count
        self._order += count
        self._next = end
        if start >= self._late_below and not self._requested_ahead:  # as usual
            return [Transmission(fragment, _FIRST) for fragment in range(start, end)]
        return [Transmission(fragment, self._first_attempt(fragment)) for fragment in range(start, end)]

    def _first_attempt(self, fragment: int) -> Attempt:
        if fragment in self._requested_ahead:
            self.statistics.direct_copies += 1
            return Attempt.DIRECT
        return _LATE if fragment < self._late_below else _FIRST

    def _repeat(self, fragment: int, now_us: int) -> Transmission:
        columns = self._columns
        attempt = Attempt.RETRY if columns.repeats[fragment] < self._retries else Attempt.RESEND
        self.statistics.given_up += attempt is Attempt.RESEND
        columns.repeats[fragment] += 1
        if columns.timeouts[fragment]:
            self._late_below = self._next + self._maximum_fragments
        return self._again(fragment, attempt, now_us)

    def _again(self, fragment: int, attempt: Attempt, now_us: int) -> Transmission:
        self._forget(fragment)
        self._sent_again[fragment] = None
        columns = self._columns
        columns.order[fragment] = self._order
        columns.sent_us[fragment] = now_us
        columns.later_acks[fragment] = 0
        self._order += 1
        return Transmission(fragment, attempt)

    def _forget(self, fragment: int) -> None:
        """Take it out of all that waits."""
        self._sent_once.pop(fragment, None)
        self._sent_again.pop(fragment, None)
        self._marked.discard(fragment)
        self._requested.discard(fragment)

    def _has_backed_off(self, fragment: int) -> bool:
        """Its timer is longer than at first."""
        return self._columns.timeouts[fragment] >= CONSTANT_TIMEOUTS

    def _timers(self) -> list[Collection[int]]:
        """Fragments whose timers run, in queues: in each the timer of the first one runs out first."""
        if not self._round_trips.all_have_begun:
            return [() if (oldest := self._oldest) is None else (oldest,)]
        if not self._some_backed_off:
            return [self._sent_again, self._sent_once]
        # Of those that have backed off the timer of one runs, which was sent longest ago.
        backed_off = [fragment for fragment in self._sent_again if self._has_backed_off(fragment)]
        others = [fragment for fragment in self._sent_again if not self._has_backed_off(fragment)]
        return [others, backed_off[:1], self._sent_once]

    def _timed_out(self, now_us: int) -> list[int]:
        """Fragments whose timers have run out, in order."""
        due = []
        for queue in self._timers():
            for fragment in queue:
                if self._deadline_us(fragment) > now_us:
                    break
                due.append(fragment)
        return sorted(due)

    def _deadline_us(self, fragment: int) -> int:
        # Computed anew each time, so that a fresh sample moves the timers that run.
        columns = self._columns
        sent_us, timeouts = columns.sent_us[fragment], columns.timeouts[fragment]
        since_us = max(sent_us, self._probed_us) if timeouts >= CONSTANT_TIMEOUTS else sent_us
        due_us = self._round_trips.deadline_us(
            since_us,
            timeouts=timeouts,
            resent=fragment in self._sent_again,
            unacknowledged=self._unacknowledged,
        )
        number = (self._first_number + fragment) % PACKET_NUMBERS
        return since_us + randomised_us(due_us - since_us, self._seed, number, timeouts)

    @property
    def deadline_us(self) -> int | None:
        """When `transmissions` has something to send at the latest; None: only an ACK can bring that about."""
        if self._marked or self._sendable:
            return 0
        first = [fragment for queue in self._timers() for fragment in itertools.islice(queue, 1)]
        return min(map(self._deadline_us, first), default=None)

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
        first_number, sent, columns, window = self._first_number, self._next, self._columns, self._window
        limiting = sent < self._count
        sent_once, round_trips = self._sent_once, self._round_trips
        marks = [False] * len(packet_numbers) if congested is None else congested
        for position, (number, after_resend, marked) in enumerate(
            zip(packet_numbers, after_resends, marks, strict=True)
        ):
            fragment = (number - first_number) % PACKET_NUMBERS
            if fragment >= sent:
                self.statistics.stale_acks += 1
            elif columns.acknowledged[fragment]:
                self.statistics.duplicate_acks += 1
            else:
                columns.acknowledged[fragment] = True
                if fragment in sent_once and fragment not in self._marked:
                    del sent_once[fragment]  # as usual
                else:
                    self._forget(fragment)
                order = columns.first_order[fragment]
                window.acknowledged(order, self._order, marked, limiting)
                if not round_trips.all_have_begun:
                    columns.forget_probes()
                round_trips.acknowledged(columns.first_sent_us[fragment], now_us, after_resend)
                if after_resend:
                    order = self._order_that_came(fragment, now_us)
                self._note_overtaken(columns.path[fragment], order)
                news.append((position, fragment))
        if news and self._some_backed_off:
            self._some_backed_off = False
            for fragment in self._sent_again:
                columns.timeouts[fragment] = min(columns.timeouts[fragment], CONSTANT_TIMEOUTS - 1)
        return news

    def request(self, packet_numbers: Sequence[int]) -> None:
        """The server asks for these fragments alone. One that has not been sent yet will go directly, too."""
        for number in packet_numbers:
            fragment = forward_distance(self._first_number, number)
            if fragment >= self._count or self._columns.acknowledged[fragment]:
                self.statistics.stale_requests += 1
            elif fragment < self._next:
                self._requested.add(fragment)
                self._marked.add(fragment)
            else:
                self._requested_ahead.add(fragment)

    def _order_that_came(self, fragment: int, now_us: int) -> int:
        """The place of the transmission to which an ACK that is due to a repeated packet came."""
        # One that came sooner than any round trip cannot be due to the latest transmission.
        least_us = self._round_trips.least_us
        latest = least_us is not None and now_us - self._columns.sent_us[fragment] >= least_us
        return (self._columns.order if latest else self._columns.first_order)[fragment]

    def _note_overtaken(self, path: int, order: int) -> None:
        """A transmission with place `order` has got through: count that for those sent before it on its path."""
        columns, overtaken = self._columns, []
        for sent in (self._sent_once, self._sent_again):
            for fragment in sent:
                if columns.order[fragment] >= order:
                    break
                if columns.path[fragment] == path:
                    overtaken.append(fragment)
        if not overtaken:
            return
        # Nothing will be sent whose ACK could tell more.
        stuck = not self._sendable and self._unacknowledged <= EARLY_RESEND_AFTER
        all_overtaken = (stuck or self._next == self._count) and len(overtaken) == sum(
            columns.path[fragment] == path for fragment in (*self._sent_once, *self._sent_again)
        )
        for fragment in overtaken:
            columns.later_acks[fragment] += 1
            if all_overtaken or columns.later_acks[fragment] >= EARLY_RESEND_AFTER:
                self._marked.add(fragment)
