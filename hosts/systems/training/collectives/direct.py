"""Without relays: every rank sends each other rank what is for it.

Pairwise exchange takes N - 1 rounds, in round i to the rank i further and from the one i before, so that no two ranks
send to the same one (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
MPICH", International Journal of High Performance Computing Applications 19, 2005). Direct sends all at
once. The barrier is by dissemination: ceil(log2 N) rounds, in round k to the rank 2^k further (D. Hensgen, R. Finkel,
U. Manber, "Two algorithms for barrier synchronization", International Journal of Parallel Programming 17, 1988).
"""

from __future__ import annotations

from functools import lru_cache

from gradbed.hosts.collectives.schedule import (
    CollectiveAction,
    CollectiveStep,
    Pattern,
    PatternStep,
    part,
)


@lru_cache(64)
def direct_all_gather(size: int) -> Pattern:
    """Rank r has part r, and sends it to all."""
    steps = []
    for away in range(1, size):
        steps.append(PatternStep(CollectiveAction.SEND, away, 0))
        steps.append(PatternStep(CollectiveAction.RECEIVE, size - away, size - away))
    return Pattern(tuple(steps), size)


@lru_cache(64)
def direct_reduce_scatter(size: int) -> Pattern:
    """Rank r receives part r of all. Its own is added to, and sent to nobody: nothing waits."""
    steps = []
    for away in range(1, size):
        steps.append(PatternStep(CollectiveAction.SEND, away, away))
        steps.append(PatternStep(CollectiveAction.ADD, size - away, 0))
    return Pattern(tuple(steps), size)


@lru_cache(64)
def sharded_server(size: int) -> Pattern:
    """Reduce-scatter, then all-gather: each rank is the parameter server of its part (M. Li et al., "Scaling
    distributed machine learning with the parameter server", OSDI 2014). 2 (N - 1) / N of the vector out and in."""
    steps = list(direct_reduce_scatter(size).steps)
    adds = tuple(place for place, step in enumerate(steps) if step.action is CollectiveAction.ADD)
    join = len(steps)
    steps.append(PatternStep(CollectiveAction.COPY, 0, None, after=adds))
    for away in range(1, size):
        steps.append(PatternStep(CollectiveAction.SEND, away, 0, after=(join,)))
        # Its part came out of the buffer in the first phase, in the step to the same rank.
        sent = 2 * (size - away - 1)
        steps.append(PatternStep(CollectiveAction.RECEIVE, size - away, size - away, after=(sent,)))
    return Pattern(tuple(steps), size)


@lru_cache(64)
def dissemination_barrier(size: int) -> Pattern:
    """Empty messages. A rank that has heard in round k sends in round k + 1."""
    steps: list[PatternStep] = []
    away = 1
    while away < size:
        heard = tuple(range(1, len(steps), 2))
        steps.append(PatternStep(CollectiveAction.SEND, away, None, after=heard[-1:]))
        steps.append(PatternStep(CollectiveAction.RECEIVE, size - away, None, after=heard[-1:]))
        away *= 2
    return Pattern(tuple(steps), size)


@lru_cache(64)
def all_to_all(size: int, *, pairwise: bool) -> Pattern:
    """Carried out as ExchangeSteps. pairwise: a round begins when what comes in the one before is there."""
    steps = [PatternStep(CollectiveAction.COPY, 0, 0)]
    for away in range(1, size):
        before = (len(steps) - 1,) if pairwise and away > 1 else ()
        steps.append(PatternStep(CollectiveAction.SEND, away, away, after=before))
        steps.append(PatternStep(CollectiveAction.RECEIVE, size - away, size - away))
    return Pattern(tuple(steps), size)


def gather(size: int, rank: int, root: int, elements: int) -> list[CollectiveStep]:
    """Gather equal vectors at the root, where they lie in the order of ranks."""
    if rank != root:
        return [CollectiveStep(CollectiveAction.SEND, root, 0, elements)]
    others = (rank for rank in range(size) if rank != root)
    return [CollectiveStep(CollectiveAction.RECEIVE, peer, peer * elements, (peer + 1) * elements) for peer in others]


def scatter(size: int, rank: int, root: int, elements: int) -> list[CollectiveStep]:
    """Scatter the root's vector: part r to rank r."""
    if rank != root:
        return [CollectiveStep(CollectiveAction.RECEIVE, root, *part(elements, size, rank))]
    others = ((root + away) % size for away in range(1, size))
    return [CollectiveStep(CollectiveAction.SEND, peer, *part(elements, size, peer)) for peer in others]


def parameter_server(size: int, rank: int, server: int, elements: int, chunks: int) -> list[CollectiveStep]:
    """Reduce over one member: all send it their vectors, and it sends back the sum, chunk after chunk."""
    steps: list[CollectiveStep] = []
    others = [(server + away) % size for away in range(1, size)]
    for chunk in range(chunks):
        start, stop = part(elements, chunks, chunk)
        if rank != server:
            steps.append(CollectiveStep(CollectiveAction.SEND, server, start, stop))
            steps.append(CollectiveStep(CollectiveAction.RECEIVE, server, start, stop, after=(len(steps) - 1,)))
            continue
        begin = len(steps)
        steps.extend(CollectiveStep(CollectiveAction.ADD, peer, start, stop) for peer in others)
        steps.append(CollectiveStep(CollectiveAction.COPY, rank, 0, 0, after=tuple(range(begin, len(steps)))))
        join = len(steps) - 1
        steps.extend(CollectiveStep(CollectiveAction.SEND, peer, start, stop, after=(join,)) for peer in others)
    return steps
