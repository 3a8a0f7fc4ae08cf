"""Recursive halving and doubling: log2 N exchanges with ranks at distances of powers of two.

All-reduce halves vectors while distances double, then doubles them on the way back (R. Rabenseifner, "Optimization of
collective reduction operations", ICCS 2004; R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19, 2005).
Reduce-scatter halves vectors and distances, so that rank r keeps part r; all-gather is its reverse.

Groups that are no power of two are folded, as there and in MPICH: of the first 2 (N - p) ranks, p the power of two
below, each of even number gives its vector to the next rank, which acts for both and hands back the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hosts.systems.training.collectives.schedule import Action, Step, part

Edges = Callable[[int], int]
"""Of a leaf, where its part of the vector starts; of the number of leaves: the vector's end."""


@dataclass(frozen=True)
class Fold:
    """The ranks that act, the leaves, are a power of two."""

    group_size: int

    @property
    def leaves(self) -> int:
        return 1 << (self.group_size.bit_length() - 1)

    @property
    def pairs(self) -> int:
        """So many leaves act for two ranks."""
        return self.group_size - self.leaves

    def leaf(self, rank: int) -> int | None:
        """None: another acts for it."""
        if rank >= 2 * self.pairs:
            return rank - self.pairs
        return rank // 2 if rank % 2 else None

    def rank(self, leaf: int) -> int:
        return 2 * leaf + 1 if leaf < self.pairs else leaf + self.pairs

    def parts(self, leaf: int) -> int:
        """The first part of the ranks that a leaf acts for."""
        return 2 * leaf if leaf < self.pairs else leaf + self.pairs

    def partner(self, rank: int) -> int | None:
        """The other one of its pair."""
        return rank ^ 1 if rank < 2 * self.pairs else None


@dataclass(frozen=True)
class _Exchange:
    """Ranges of leaves: what is given away when vectors are halved, and what is kept."""

    peer: int
    given: tuple[int, int]
    kept: tuple[int, int]


def _exchanges(fold: Fold, leaf: int, *, nearest_first: bool) -> list[_Exchange]:
    found = []
    low, high = 0, fold.leaves
    distances = [1 << bit for bit in range(fold.leaves.bit_length() - 1)]
    for distance in distances if nearest_first else reversed(distances):
        middle = (low + high) // 2
        lower, upper = (low, middle), (middle, high)
        kept, given = (upper, lower) if leaf & distance else (lower, upper)
        found.append(_Exchange(fold.rank(leaf ^ distance), given, kept))
        low, high = kept
    return found


def _halve(steps: list[Step], exchanges: list[_Exchange], edges: Edges, last: tuple[int, ...]) -> tuple[int, ...]:
    """last: the receive before all this, if any; returned: the last one. Receives wait for each other, since a send
    needs all that came before."""
    for exchange in exchanges:
        steps.append(Step(Action.SEND, exchange.peer, *_range(edges, exchange.given), after=last))
        steps.append(Step(Action.ADD, exchange.peer, *_range(edges, exchange.kept), after=last))
        last = (len(steps) - 1,)
    return last


def _double(
    steps: list[Step], exchanges: list[_Exchange], edges: Edges, last: tuple[int, ...], given_at: int | None
) -> tuple[int, ...]:
    """given_at: the place of the first exchange's send when vectors were halved, if they were: what comes back takes
    the place of what was sent there."""
    for number, exchange in reversed(list(enumerate(exchanges))):
        given = () if given_at is None else (given_at + 2 * number,)
        steps.append(Step(Action.SEND, exchange.peer, *_range(edges, exchange.kept), after=last))
        steps.append(Step(Action.RECEIVE, exchange.peer, *_range(edges, exchange.given), after=(*given, *last)))
        last = (len(steps) - 1,)
    return last


def _range(edges: Edges, leaves: tuple[int, int]) -> tuple[int, int]:
    return edges(leaves[0]), edges(leaves[1])


def all_reduce(size: int, rank: int, elements: int) -> list[Step]:
    fold = Fold(size)
    leaf, partner = fold.leaf(rank), fold.partner(rank)
    if leaf is None:
        assert partner is not None
        return [
            Step(Action.SEND, partner, 0, elements),
            Step(Action.RECEIVE, partner, 0, elements, after=(0,)),
        ]
    steps = [] if partner is None else [Step(Action.ADD, partner, 0, elements)]
    begin = len(steps)
    exchanges = _exchanges(fold, leaf, nearest_first=True)

    def edges(leaf: int) -> int:
        return leaf * elements // fold.leaves

    last = _halve(steps, exchanges, edges, tuple(range(begin)))
    last = _double(steps, exchanges, edges, last, begin)
    if partner is not None:
        steps.append(Step(Action.SEND, partner, 0, elements, after=last))
    return steps


def reduce_scatter(size: int, rank: int, elements: int) -> list[Step]:
    fold = Fold(size)
    leaf, partner = fold.leaf(rank), fold.partner(rank)
    if leaf is None:
        assert partner is not None
        return [
            Step(Action.SEND, partner, 0, elements),
            Step(Action.RECEIVE, partner, *part(elements, size, rank), after=(0,)),
        ]
    steps = [] if partner is None else [Step(Action.ADD, partner, 0, elements)]
    exchanges = _exchanges(fold, leaf, nearest_first=False)
    last = _halve(steps, exchanges, _edges_of_parts(fold, elements), tuple(range(len(steps))))
    if partner is not None:
        steps.append(Step(Action.SEND, partner, *part(elements, size, partner), after=last))
    return steps


def all_gather(size: int, rank: int, elements: int) -> list[Step]:
    """elements: of all parts."""
    fold = Fold(size)
    leaf, partner = fold.leaf(rank), fold.partner(rank)
    if leaf is None:
        assert partner is not None
        start, stop = part(elements, size, rank)
        return [
            Step(Action.SEND, partner, start, stop),
            Step(Action.RECEIVE, partner, 0, start),
            Step(Action.RECEIVE, partner, stop, elements),
        ]
    steps = [] if partner is None else [Step(Action.RECEIVE, partner, *part(elements, size, partner))]
    exchanges = _exchanges(fold, leaf, nearest_first=False)
    last = _double(steps, exchanges, _edges_of_parts(fold, elements), tuple(range(len(steps))), None)
    if partner is not None:
        start, stop = part(elements, size, partner)
        steps.append(Step(Action.SEND, partner, 0, start, after=last))
        steps.append(Step(Action.SEND, partner, stop, elements, after=last))
    return steps


def _edges_of_parts(fold: Fold, elements: int) -> Edges:
    def edges(leaf: int) -> int:
        return part(elements, fold.group_size, fold.parts(leaf))[0]

    return edges
