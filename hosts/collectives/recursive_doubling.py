"""Whom a rank exchanges whole vectors with in an all-reduce by recursive doubling.

Of a power of two of ranks, each exchanges its partial sum with the rank at distance 1, then 2, 4, ...: log2 N
messages one after the other, the fewest there can be, and the whole vector in each (R. Thakur, R. Rabenseifner,
W. Gropp, "Optimization of collective communication operations in MPICH", International Journal of High Performance
Computing Applications 19, 2005). Other groups are folded, as there: of the first 2 (N - 2^k) ranks the even ones give
their vectors to their odd neighbours, which take their place and give them the sum at the end.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Partner:
    """The rank with which another one exchanges in a step, which both number alike."""

    step: int
    peer: int
    sends: bool
    receives: bool


def last_step(size: int) -> int:
    """The number of the step in which folded ranks get the sum; 0: vectors are given to neighbours."""
    return size.bit_length()


def partners(size: int, rank: int) -> tuple[Partner, ...]:
    """Return a rank's partners in the order of steps."""
    doublings = size.bit_length() - 1
    folded = size - (1 << doublings)
    neighbour = rank ^ 1 if rank < 2 * folded else None
    if neighbour is not None and rank % 2 == 0:
        return (
            Partner(0, neighbour, sends=True, receives=False),
            Partner(last_step(size), neighbour, sends=False, receives=True),
        )
    place = rank // 2 if neighbour is not None else rank - folded
    found = []
    if neighbour is not None:
        found.append(Partner(0, neighbour, sends=False, receives=True))
    for doubling in range(doublings):
        other = place ^ (1 << doubling)
        peer = 2 * other + 1 if other < folded else other + folded
        found.append(Partner(1 + doubling, peer, sends=True, receives=True))
    if neighbour is not None:
        found.append(Partner(last_step(size), neighbour, sends=True, receives=False))
    return tuple(found)
