"""Gradients of which all workers send the same blocks, so that packets of different workers have the same values in
the same places: switches that add lanes can sum them.

Nobody has to ask which blocks: each worker works it out of the sums, which all have seen. A block whose last sum was
large, and had gathered that in few rounds, has probably gathered much since; blocks that were never sent come first.
What is left out is held back, and is sent with the block's next turn (gradbed.hosts.compressors.error_feedback).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.error_feedback import ErrorFeedback
from gradbed.hosts.compressors.methods import within_int32

BLOCK_VALUES = 32


def compact_values(values: int, part: float | None) -> int:
    """Return how many of so many values are sent; None: all."""
    return values if part is None else BLOCK_VALUES * _kept(values, part)


def _kept(values: int, part: float) -> int:
    return max(1, math.ceil(part * _blocks(values)))


def _blocks(values: int) -> int:
    return -(-values // BLOCK_VALUES)


class AgreedBlocks:
    """Round by round the blocks that are sent. The same sums make the same choices."""

    def __init__(self, values: int, part: float) -> None:
        self._sums = np.ones(_blocks(values))
        """Of magnitudes of each block's last sum, for each round in which it was gathered; one more, so that no
        block is forgotten."""
        self._rounds = np.ones(len(self._sums), np.int64)
        """Since then."""
        self._is_new = np.ones(len(self._sums), np.bool_)
        self._kept = _kept(values, part)
        self.chosen = self._choose()
        """Numbers of blocks, ascending."""

    def _choose(self) -> NDArray[np.intp]:
        expected = np.where(self._is_new, np.inf, self._sums * self._rounds)
        return np.sort(np.argsort(-expected, kind="stable")[: self._kept])

    def take(self, total: NDArray[np.int64]) -> None:
        """The sum of the chosen blocks, shape (blocks, BLOCK_VALUES)."""
        self._sums[self.chosen] = (np.abs(total).sum(axis=1) + 1) / self._rounds[self.chosen]
        self._is_new[self.chosen] = False
        self._rounds += 1
        self._rounds[self.chosen] = 1
        self.chosen = self._choose()


class BlockSparse:
    """The gradients of one worker as they are sent, and sums as they were meant."""

    def __init__(self, values: int, part: float) -> None:
        """part: of the blocks that is sent in a round, above 0, at most 1."""
        self._values = values
        self._agreed = AgreedBlocks(values, part)
        self.held_back = ErrorFeedback(BLOCK_VALUES * _blocks(values))
        """Filled up with zeros to whole blocks."""

    @property
    def _places(self) -> NDArray[np.intp]:
        return (BLOCK_VALUES * self._agreed.chosen[:, None] + np.arange(BLOCK_VALUES)).reshape(-1)

    def compact(self, gradient: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return what to send of a gradient and of what was held back before; of the same length each time."""
        filled = np.zeros(len(self.held_back.held), np.int32)
        filled[: self._values] = gradient
        self.held_back.take(filled)
        places = self._places
        sent = within_int32(self.held_back.held[places])
        self.held_back.sent(places, sent)
        return sent.astype(np.int32)

    def expanded(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of what workers sent, in its places, and zeros elsewhere. Chooses the next round's blocks."""
        found = np.zeros(len(self.held_back.held), np.int64)
        found[self._places] = total
        self._agreed.take(total.reshape(-1, BLOCK_VALUES))
        return found[: self._values]


class Whole:
    """Gradients that are sent as they are."""

    def compact(self, gradient: NDArray[np.int32]) -> NDArray[np.int32]:
        return gradient

    def expanded(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        return total


def sent_form(values: int, part: float | None) -> BlockSparse | Whole:
    """Return the form in which a worker's gradients of so many values are sent; None: whole."""
    return Whole() if part is None else BlockSparse(values, part)
