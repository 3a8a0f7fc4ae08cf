"""All-reduce by recursive doubling: the algorithm of the fewest rounds, for short vectors.

gradbed.hosts.collectives.recursive_doubling says who exchanges with whom. What a rank sends must not change before
its peer has it. So a partial sum is made beside the one that is on its way, in the other half of a buffer of two
vectors: a rank does not wait for acknowledgements.
"""

from __future__ import annotations

from gradbed.hosts.collectives.recursive_doubling import last_step, partners
from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep


def all_reduce(size: int, rank: int, elements: int) -> list[CollectiveStep]:
    """Return the steps of an all-reduce in a buffer of two vectors; the input is in the first half."""
    steps: list[CollectiveStep] = []
    halves = ((0, elements), (elements, 2 * elements))
    half = 0
    whole: tuple[int, ...] = ()  # the step that completed the partial sum in `half`
    sent: list[tuple[int, ...]] = [(), ()]  # the last send out of either half
    for partner in partners(size, rank):
        if partner.sends:
            sent[half] = (len(steps),)
            steps.append(CollectiveStep(CollectiveAction.SEND, partner.peer, *halves[half], after=whole))
        if not partner.receives:
            continue
        if partner.sends:
            other = 1 - half
            steps.append(
                CollectiveStep(
                    CollectiveAction.COPY, rank, *halves[other], after=(*whole, *sent[other]), source=halves[half][0]
                )
            )
            whole, half = (len(steps) - 1,), other
        action = CollectiveAction.ADD
        if partner.step == last_step(size):
            action, half = CollectiveAction.RECEIVE, 1 - half
        steps.append(CollectiveStep(action, partner.peer, *halves[half], after=whole))
        whole = (len(steps) - 1,)
    return steps


def output(size: int, rank: int, elements: int) -> tuple[int, int]:
    """Return where the sum is: the half into which the last one was received."""
    received = sum(partner.receives and partner.step > 0 for partner in partners(size, rank))
    start = received % 2 * elements
    return start, start + elements
