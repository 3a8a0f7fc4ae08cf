"""How many packets workers send again if each does so exactly when it has no sum, with nothing else known.

It shares nothing with the transport and knows no time. Workers and server hang on one switch that sums; each link
loses a packet with the same probability. In a try each worker that has no sum sends its packet. The switch adds what
it lacks. A complete sum goes to the server once, and again whenever the first worker sends. The server's answer frees
the slot, and the switch copies it to all workers. Later packets pass the free slot and are answered alone.
"""

from __future__ import annotations

import random


def mean_resends(*, workers: int, loss: float, fragments: int, seed: int) -> float:
    """Of all workers together, for each fragment."""
    chance = random.Random(seed)
    return sum(_resends(chance, workers, 1 - loss) for _ in range(fragments)) / fragments


def _resends(chance: random.Random, workers: int, arrives: float) -> int:
    def crosses(links: int) -> bool:
        return all(chance.random() < arrives for _ in range(links))

    added: set[int] = set()
    lacking = set(range(workers))
    is_free, sent = False, 0
    while lacking:
        sent += len(lacking)
        for worker in sorted(lacking):
            if not crosses(1):
                continue
            if is_free:
                if crosses(3):
                    lacking.discard(worker)
                continue
            was_complete = len(added) == workers
            added.add(worker)
            if len(added) == workers and (not was_complete or worker == 0) and crosses(2):
                is_free = True
                lacking -= {each for each in lacking if crosses(1)}
    return sent - workers
