"""A parameter server's rounds under loss with timers that never change.

An event simulation that shares nothing with the transport. All fragments of a round leave at once. A fragment's
packet reaches the server over `hops` links that each lose it with the same probability. Once all workers' packets are
there, the sum goes to each worker over as many. A worker repeats what it has no sum of after a constant time, and the
server answers what it has the whole sum of with that sum.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable


def mean_round_s(
    *, workers: int, fragments: int, hops: int, loss: float, timeout_s: float, packet_s: float, rounds: int, seed: int
) -> float:
    """packet_s: of a packet on the server's link, in each direction one after the other."""
    chance = random.Random(seed)
    arrives = (1 - loss) ** hops
    return sum(_round_s(chance, workers, fragments, arrives, timeout_s, packet_s) for _ in range(rounds)) / rounds


def _round_s(
    chance: random.Random, workers: int, fragments: int, arrives: float, timeout_s: float, packet_s: float
) -> float:
    events: list[tuple[float, int, Callable[[float], None]]] = []
    have: list[set[int]] = [set() for _ in range(fragments)]
    lacking = {(worker, fragment) for worker in range(workers) for fragment in range(fragments)}
    free_s = [0.0, 0.0]
    ended_s = 0.0

    def at(time_s: float, action: Callable[[float], None]) -> None:
        heapq.heappush(events, (time_s, len(events) + chance.randrange(1 << 40), action))

    def cross(direction: int, time_s: float, action: Callable[[float], None]) -> None:
        free_s[direction] = max(free_s[direction], time_s) + packet_s
        if chance.random() < arrives:
            at(free_s[direction], action)

    def send(worker: int, fragment: int, time_s: float) -> None:
        if (worker, fragment) in lacking:
            cross(0, time_s, lambda now_s: reach(worker, fragment, now_s))
            at(time_s + timeout_s, lambda now_s: send(worker, fragment, now_s))

    def reach(worker: int, fragment: int, time_s: float) -> None:
        was_whole = len(have[fragment]) == workers
        have[fragment].add(worker)
        if was_whole:
            answer(worker, fragment, time_s)
        elif len(have[fragment]) == workers:
            for each in range(workers):
                answer(each, fragment, time_s)

    def answer(worker: int, fragment: int, time_s: float) -> None:
        cross(1, time_s, lambda now_s: take(worker, fragment, now_s))

    def take(worker: int, fragment: int, time_s: float) -> None:
        nonlocal ended_s
        if (worker, fragment) in lacking:
            lacking.discard((worker, fragment))
            ended_s = time_s

    for fragment in range(fragments):
        for worker in range(workers):
            send(worker, fragment, 0.0)
    while lacking:
        time_s, _, action = heapq.heappop(events)
        action(time_s)
    return ended_s
