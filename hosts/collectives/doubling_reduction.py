"""All-reduce of one round by recursive doubling, from one worker's side. No sockets, no time.

Fragment by fragment, in the steps of recursive_doubling.py: a fragment is sent on as soon as all that it waits for is
there. Partial sums are exact, and travel as those of a ring (ring_reduction.py). So does the sum in the last step,
which folded workers get; the others bring it into that form themselves, so that all have the same, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.ring import RingFlags
from gradbed.hosts.collectives.recursive_doubling import last_step, partners
from gradbed.hosts.collectives.ring_reduction import RingMessage, partial_messages, whole_sum
from gradbed.hosts.learning.shifted_sums import restored, shifted

Outgoing = list[tuple[int, RingMessage]]
"""Each with the worker it is for."""


class DoublingReduction:
    """Worker `index` of `workers` in one round; `gradient`: its fragments, shape (fragments, lanes)."""

    def __init__(self, round_number: int, index: int, workers: int, gradient: NDArray[np.int32]) -> None:
        self._round = round_number
        self._partners = partners(workers, index)
        self._last = last_step(workers)
        self._senders = {partner.step: partner.peer for partner in self._partners if partner.receives}
        self._totals = gradient.astype(np.int64)
        self._places = [0] * len(gradient)
        """By fragment: the partner that it waits for."""
        self.sums: NDArray[np.int64] = np.zeros(gradient.shape, np.int64)
        """Global sums; whole once `finished`."""
        self.missing = len(gradient)
        """Fragments without a global sum."""
        self._halves: dict[tuple[int, int], RingMessage] = {}
        """By fragment and step: half of a partial sum that waits for the other half."""
        self._come: dict[tuple[int, int], NDArray[np.int64]] = {}
        """By fragment and step: what has come, perhaps before the fragment waits for it."""
        self._seen: set[tuple[int, int, RingFlags | None]] = set()

    @property
    def finished(self) -> bool:
        """All global sums are there."""
        return self.missing == 0

    def begin(self) -> Outgoing:
        """The messages that depend on nobody else."""
        return [each for fragment in range(len(self._totals)) for each in self._begin_step(fragment)]

    def accept(self, peer: int, message: RingMessage) -> Outgoing | None:
        """Take in what a worker sent; returns what to send on. None: it does not send that in this round, or has."""
        fragment, step = message.fragment, message.step
        if message.round != self._round or fragment >= len(self._totals) or self._senders.get(step) != peer:
            return None
        if (fragment, step, message.half) in self._seen:
            return None
        self._seen.add((fragment, step, message.half))
        if step == self._last:
            self._finish(fragment, message.lanes, message.shift)
            return []
        total = whole_sum(message, self._halves, (fragment, step))
        if total is None:
            return []
        self._come[fragment, step] = total
        return self._go_on(fragment)

    def _go_on(self, fragment: int) -> Outgoing:
        """Add what the fragment waits for, if it is there, and begin the next steps."""
        found: Outgoing = []
        while self._places[fragment] < len(self._partners):
            step = self._partners[self._places[fragment]].step
            total = self._come.pop((fragment, step), None)
            if total is None:
                break
            self._totals[fragment] += total
            self._places[fragment] += 1
            found += self._begin_step(fragment)
        return found

    def _begin_step(self, fragment: int) -> Outgoing:
        """Send what is due, up to the next step in which the fragment waits."""
        found: Outgoing = []
        while self._places[fragment] < len(self._partners):
            partner = self._partners[self._places[fragment]]
            if partner.sends and partner.step == self._last:
                lanes, shifts = shifted(self._totals[fragment][None])
                found.append(
                    (partner.peer, RingMessage(self._round, self._last, fragment, lanes[0], shift=int(shifts[0])))
                )
            elif partner.sends:
                messages = partial_messages(self._round, partner.step, fragment, self._totals[fragment])
                found += [(partner.peer, message) for message in messages]
            if partner.receives:
                return found
            self._places[fragment] += 1
        if self._last not in self._senders:
            lanes, shifts = shifted(self._totals[fragment][None])
            self._finish(fragment, lanes[0], int(shifts[0]))
        return found

    def _finish(self, fragment: int, lanes: NDArray[np.int32], shift: int) -> None:
        self.sums[fragment] = restored(lanes[None], np.array([shift]))[0]
        self.missing -= 1
