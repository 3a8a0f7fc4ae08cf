"""Which fragments keep their order among each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def ways(designations: Sequence[Sequence[Hashable]]) -> tuple[int, ...]:
    """Names of the ways that a job's fragments go, turn by turn; at least one turn.

    designations: for each worker those of its turns; workers with any have equally many. A fragment's answer waits
    for all workers, so fragments go the same way if their gradients, of whatever workers, are summed at the same
    switches.
    """
    names: dict[frozenset[Hashable], int] = {}
    turns = zip(*(own for own in designations if own), strict=True)
    return tuple(names.setdefault(frozenset(turn), len(names)) for turn in turns) or (0,)
