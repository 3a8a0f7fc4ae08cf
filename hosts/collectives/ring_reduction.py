"""Ring all-reduce of one round (Patarasuk and Yuan 2009), from one worker's side. No sockets, no time.

The round's fragments are dealt to as many segments as there are workers. In step k of the reduce-scatter, for k from
0 to n - 2, worker i sends segment i - k (modulo n) to worker i + 1, which adds its own gradient; after step n - 2
worker i has the global sum of segment i + 1. In the all-gather, n - 1 more steps, the sums go around in the same
direction. Steps are not barriers: a fragment is passed on as soon as it is there, whatever became of the others.

Partial sums are exact. One that leaves int32 travels as two packets, its lower and its upper 32 bits; the worker
that completes a sum brings it into the form of the ACKs of the parameter server
(gradbed.hosts.learning.shifted_sums), fragment by fragment, so that both give the same result bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.ring import RingFlags
from gradbed.hosts.learning.shifted_sums import restored, shifted

_INT32 = np.iinfo(np.int32)
_LOW_BITS = np.int64(0xFFFF_FFFF)
Key = TypeVar("Key")


@dataclass(frozen=True)
class RingMessage:
    """What one packet carries to the next worker."""

    round: int
    step: int
    fragment: int
    lanes: NDArray[np.int32]
    """Shape (lanes,)."""
    half: RingFlags | None = None
    """LOW or HIGH: half of a partial sum; None: all of it, or of a global sum."""
    shift: int = 0
    """Of a global sum."""


def segment_bounds(segment: int, fragments: int, workers: int) -> tuple[int, int]:
    """First fragment of a segment, and the one after its last; segments differ by one fragment at most."""
    return segment * fragments // workers, (segment + 1) * fragments // workers


def partial_messages(round_number: int, step: int, fragment: int, total: NDArray[np.int64]) -> list[RingMessage]:
    """A partial sum, exact: one message, or two halves."""
    if total.max(initial=0) <= _INT32.max and total.min(initial=0) >= _INT32.min:
        return [RingMessage(round_number, step, fragment, total.astype(np.int32))]
    return [
        RingMessage(round_number, step, fragment, part.astype(np.int32), flag)
        for part, flag in ((total, RingFlags.LOW), (total >> 32, RingFlags.HIGH))
    ]


def whole_sum(message: RingMessage, halves: dict[Key, RingMessage], key: Key) -> NDArray[np.int64] | None:
    """The partial sum that a message completes; None: half of it is missing, and the message is kept under `key`."""
    if message.half is None:
        return message.lanes.astype(np.int64)
    other = halves.setdefault(key, message)
    if other.half == message.half:
        return None
    del halves[key]
    low, high = (message, other) if message.half is RingFlags.LOW else (other, message)
    total: NDArray[np.int64] = (high.lanes.astype(np.int64) << 32) | (low.lanes.astype(np.int64) & _LOW_BITS)
    return total


class RingReduction:
    """Worker `index` of `workers` in one round; `gradient`: its fragments, shape (fragments, lanes)."""

    def __init__(self, round_number: int, index: int, workers: int, gradient: NDArray[np.int32]) -> None:
        self._round = round_number
        self._index = index
        self._workers = workers
        self._gradient = gradient
        self.sums: NDArray[np.int64] = np.zeros(gradient.shape, np.int64)
        """Global sums; whole once `finished`."""
        self.missing = len(gradient)
        """Fragments without a global sum."""
        self._awaited_steps = [0] * len(gradient)
        """By fragment: the step in which it comes next; -1: it does not."""
        for segment in range(workers):
            first, end = segment_bounds(segment, len(gradient), workers)
            self._awaited_steps[first:end] = [(index - 1 - segment) % workers] * (end - first)
        self._halves: dict[int, RingMessage] = {}
        """By fragment: half of a partial sum that waits for the other half."""

    @property
    def finished(self) -> bool:
        """All global sums are there."""
        return self.missing == 0

    def begin(self) -> list[RingMessage]:
        """The messages that depend on nobody else."""
        if self._workers == 1:
            self.sums[:] = self._gradient
            self.missing = 0
            return []
        first, end = segment_bounds(self._index, len(self._gradient), self._workers)
        return [RingMessage(self._round, 0, fragment, self._gradient[fragment]) for fragment in range(first, end)]

    def accept(self, message: RingMessage) -> list[RingMessage] | None:
        """Take in what the worker before sent; returns what to send on. None: nobody sends that now."""
        fragment = message.fragment
        if message.round != self._round or fragment >= len(self._gradient):
            return None
        if message.step != self._awaited_steps[fragment]:
            return None
        if message.step >= self._workers - 1:
            return self._gather(message)
        total = whole_sum(message, self._halves, fragment)
        return [] if total is None else self._reduce(message.step, fragment, total)

    def _reduce(self, step: int, fragment: int, total: NDArray[np.int64]) -> list[RingMessage]:
        total = total + self._gradient[fragment]
        if step < self._workers - 2:
            self._awaited_steps[fragment] = step + self._workers
            return partial_messages(self._round, step + 1, fragment, total)
        lanes, shifts = shifted(total[None])
        whole = RingMessage(self._round, step + 1, fragment, lanes[0], shift=int(shifts[0]))
        self._finish(whole)
        return [whole]

    def _gather(self, message: RingMessage) -> list[RingMessage]:
        self._finish(message)
        return [replace(message, step=message.step + 1)] if message.step < 2 * self._workers - 3 else []

    def _finish(self, whole: RingMessage) -> None:
        self.sums[whole.fragment] = restored(whole.lanes[None], np.array([whole.shift]))[0]
        self._awaited_steps[whole.fragment] = -1
        self.missing -= 1
