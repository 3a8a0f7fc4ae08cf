"""Recursive halving and doubling: log2 N exchanges, rounded up, with ranks at distances that halve or double.

All-reduce halves vectors while distances double, then doubles them on the way back (R. Rabenseifner, "Optimization of
collective reduction operations", ICCS 2004; R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH", International Journal of High Performance Computing Applications 19, 2005).
Reduce-scatter halves vectors and distances, so that rank r keeps part r; all-gather is its reverse.

Groups that are no power of two go round a circle. All-gather is that of J. Bruck et al., "Efficient algorithms for
all-to-all communications in multiport message-passing systems", IEEE Transactions on Parallel and Distributed Systems
8, 1997, which MPICH takes for such groups: a rank that has the c parts from its own on gets the next c, or what is
left, from the rank c further. Reduce-scatter is its reverse, and all-reduce both (J. L. Träff, "Optimal,
non-pipelined reduce-scatter and allreduce algorithms", 2024). Each rank sends no more than in a ring, and all do the
same. MPICH's way for all-reduce, to fold the group to a power of two, sends the whole vector twice more, and the
folded ranks' delay spreads to all. Parts beyond the last rank's go as a second message.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep

Range = tuple[int, int]


@dataclass(frozen=True)
class _Exchange:
    """An exchange of a reduce-scatter: `given` goes to one rank, what comes from another is added to `kept`.

    All-gather returns it: `kept` goes back to where it came from, `given` comes from where it went. Empty ranges
    of elements are left out but where all are empty.
    """

    to: int
    given: tuple[Range, ...]
    source: int
    kept: tuple[Range, ...]


def _hypercube(size: int, rank: int, elements: int, *, nearest_first: bool) -> list[_Exchange]:
    found = []
    low, high = 0, size
    distances = [1 << bit for bit in range(size.bit_length() - 1)]
    for distance in distances if nearest_first else reversed(distances):
        middle = (low + high) // 2
        lower, upper = (low, middle), (middle, high)
        kept, given = (upper, lower) if rank & distance else (lower, upper)
        peer = rank ^ distance
        found.append(_Exchange(peer, (_range(size, elements, *given),), peer, (_range(size, elements, *kept),)))
        low, high = kept
    return found


def _circle(size: int, rank: int, elements: int) -> list[_Exchange]:
    distances = [1 << bit for bit in range((size - 1).bit_length())]
    found = []
    for distance in reversed(distances):
        count = min(distance, size - distance)
        to, source = (rank + distance) % size, (rank - distance) % size
        found.append(
            _Exchange(to, _wrapped(size, elements, to, count), source, _wrapped(size, elements, rank, count))
        )
    return found


def _range(size: int, elements: int, first: int, last: int) -> Range:
    """Return the range of the parts first:last."""
    return first * elements // size, last * elements // size


def _wrapped(size: int, elements: int, first: int, count: int) -> tuple[Range, ...]:
    """Return the ranges of so many parts from one on, round the circle."""
    if first + count <= size:
        return (_range(size, elements, first, first + count),)
    return _range(size, elements, first, size), _range(size, elements, 0, first + count - size)


def _exchanges(size: int, rank: int, elements: int, *, nearest_first: bool = False) -> list[_Exchange]:
    if size & (size - 1):
        return _circle(size, rank, elements)
    return _hypercube(size, rank, elements, nearest_first=nearest_first)


def _halve(steps: list[CollectiveStep], exchanges: list[_Exchange]) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """The places of each exchange's sends, and of the last receives. Receives wait for those before: a send needs all
    that came before."""
    sends: list[tuple[int, ...]] = []
    last: tuple[int, ...] = ()
    for exchange in exchanges:
        begin = len(steps)
        steps.extend(
            CollectiveStep(CollectiveAction.SEND, exchange.to, *given, after=last) for given in exchange.given
        )
        middle = len(steps)
        steps.extend(
            CollectiveStep(CollectiveAction.ADD, exchange.source, *kept, after=last) for kept in exchange.kept
        )
        sends.append(tuple(range(begin, middle)))
        last = tuple(range(middle, len(steps)))
    return sends, last


def _double(
    steps: list[CollectiveStep], exchanges: list[_Exchange], sends: list[tuple[int, ...]], last: tuple[int, ...]
) -> None:
    """sends: the places of each exchange's sends when vectors were halved: what comes back takes the place of what
    was sent there. last: what all waits for."""
    for exchange, given in zip(reversed(exchanges), reversed(sends), strict=True):
        steps.extend(
            CollectiveStep(CollectiveAction.SEND, exchange.source, *kept, after=last) for kept in exchange.kept
        )
        middle = len(steps)
        steps.extend(
            CollectiveStep(CollectiveAction.RECEIVE, exchange.to, *back, after=(*given, *last))
            for back in exchange.given
        )
        last = tuple(range(middle, len(steps)))


def all_reduce(size: int, rank: int, elements: int) -> list[CollectiveStep]:
    steps: list[CollectiveStep] = []
    exchanges = _exchanges(size, rank, elements, nearest_first=True)
    _double(steps, exchanges, *_halve(steps, exchanges))
    return steps


def reduce_scatter(size: int, rank: int, elements: int) -> list[CollectiveStep]:
    steps: list[CollectiveStep] = []
    _halve(steps, _exchanges(size, rank, elements))
    return steps


def all_gather(size: int, rank: int, elements: int) -> list[CollectiveStep]:
    """elements: of all parts."""
    steps: list[CollectiveStep] = []
    exchanges = _exchanges(size, rank, elements)
    _double(steps, exchanges, [()] * len(exchanges), ())
    return steps
