"""Which fragments keep their order among each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def aggregation_paths(designations: Sequence[Sequence[Hashable]]) -> tuple[int, ...]:
    """Numbers of the paths that a job's fragments take, turn by turn; at least one turn.

    designations: for each worker those of its turns; workers with any have equally many. A fragment's ACK waits for
    all workers, so fragments share a path if their gradients, of whatever workers, are summed at the same switches.
    """
    numbers: dict[frozenset[Hashable], int] = {}
    turns = zip(*(own for own in designations if own), strict=True)
    return tuple(numbers.setdefault(frozenset(turn), len(numbers)) for turn in turns) or (0,)
