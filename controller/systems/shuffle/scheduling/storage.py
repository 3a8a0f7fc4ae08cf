"""What workers store: at first by chance, and after a shuffle what they needed and a cache (storage models).

A worker's storage is a share of all samples, from 1/K of K workers (its own part alone) to 1 (everything).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.instance import Instance

Replacement = Literal["random", "least-recent"]
"""Which samples leave a full cache: any, or those that were needed longest ago."""


def parts(samples: int, workers: int, draw: random.Random) -> list[list[int]]:
    """Every sample to one worker, in parts that differ by at most one: the demand of an epoch."""
    order = draw.sample(range(samples), samples)
    return [sorted(order[worker::workers]) for worker in range(workers)]


def places_of(samples: int, workers: int, share: float) -> int:
    """How many samples a worker stores; UserError if the workers together could not store everything."""
    places = min(samples, math.ceil(share * samples - 1e-9))
    if not 0 < share <= 1 or places < math.ceil(samples / workers):
        raise UserError(f"a worker stores between 1/{workers} and 1 of all samples, got {share:g}")
    return places


def epochs(
    hosts: Sequence[str],
    sizes_bytes: Sequence[int],
    share: float,
    seed: int,
    replacement: Replacement = "random",
    master: str | None = None,
    first: Sequence[Sequence[int]] | None = None,
) -> Iterator[Instance]:
    """The shuffle before each epoch, one after the other without end.

    Before the first, each worker stores a part of its own and, as long as there is room, others by chance. After a
    shuffle it stores what it needed, and what the rule keeps of the rest. first: the workers' own parts before the
    first; None: by chance.
    """
    samples, workers = len(sizes_bytes), len(hosts)
    places = places_of(samples, workers, share)
    draw = random.Random(seed)
    # For each worker the samples that it stores, those that it needed last at the end.
    kept: list[list[int]] = []
    for own in first or parts(samples, workers, draw):
        of_others = sorted(set(range(samples)).difference(own))
        kept.append([*draw.sample(of_others, places - len(own)), *own])
    while True:
        needed = parts(samples, workers, draw)
        yield Instance(
            workers=tuple(hosts),
            sizes_bytes=tuple(sizes_bytes),
            stored=tuple(tuple(sorted(own)) for own in kept),
            needed=tuple(map(tuple, needed)),
            master=master,
        )
        for worker, new in enumerate(needed):
            fresh = set(new)
            former = [sample for sample in kept[worker] if sample not in fresh]
            room = min(len(former), places - len(new))
            if replacement == "random":
                former = draw.sample(former, len(former))
            kept[worker] = [*former[len(former) - room :], *new]
