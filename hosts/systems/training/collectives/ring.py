"""Rings: each rank sends to the next and receives from the one before, N - 1 times for each phase.

All-reduce is a reduce-scatter and an all-gather: 2 (N - 1) steps of 1/N of the vector, which is the least that hosts
can send (P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
Parallel and Distributed Computing 69, 2009). With chunks, a part is on its way to the next rank while its
rest still comes.
"""

from __future__ import annotations

from functools import lru_cache

from gradbed.hosts.collectives.schedule import CollectiveAction, Pattern, PatternStep


def _phase(action: CollectiveAction, first_part: int, size: int, chunks: int, begin: int) -> list[PatternStep]:
    """The steps of one phase, from place `begin` on. first_part: what rank 0 sends first. In each round a rank sends
    on what came in the round before."""
    steps: list[PatternStep] = []
    for turn in range(size - 1):
        for chunk in range(chunks):
            place = begin + len(steps)
            came = (place - 2 * chunks + 1,) if turn else ()
            steps.append(PatternStep(CollectiveAction.SEND, 1, (first_part - turn) % size, chunk, came))
            steps.append(PatternStep(action, size - 1, (first_part - turn - 1) % size, chunk))
    return steps


@lru_cache(64)
def ring_reduce_scatter(size: int, chunks: int) -> Pattern:
    """Rank r keeps part r."""
    return Pattern(tuple(_phase(CollectiveAction.ADD, -1, size, chunks, 0)), size, chunks)


@lru_cache(64)
def ring_all_gather(size: int, chunks: int) -> Pattern:
    """Rank r has part r."""
    return Pattern(tuple(_phase(CollectiveAction.RECEIVE, 0, size, chunks, 0)), size, chunks)


@lru_cache(64)
def ring_all_reduce(size: int, chunks: int) -> Pattern:
    """Reduce-scatter, then all-gather, chunk by chunk: a rank's own part goes out when the last addend is in. What
    takes a part's place waits until the part, sent in the first phase, is with the next rank."""
    adds = _phase(CollectiveAction.ADD, -1, size, chunks, 0)
    half = len(adds)
    steps = list(adds)
    for offset, step in enumerate(_phase(CollectiveAction.RECEIVE, 0, size, chunks, half)):
        place = half + offset
        last = (place - 2 * chunks + 1,)
        after = step.after or last if step.action is CollectiveAction.SEND else (place - 1 - half,)
        steps.append(PatternStep(step.action, step.peer, step.part, step.chunk, after))
    return Pattern(tuple(steps), size, chunks)
