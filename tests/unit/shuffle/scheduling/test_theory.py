"""Published curves, against what they say counted out."""

from __future__ import annotations

import itertools
import random

import pytest

from gradbed.experiments.systems.shuffle.figures import CURVES, attia_tandon_worst, coded_mapreduce, lee_average


def counted_lee(workers: int, share: float, samples: int, seed: int) -> float:
    """Packets for a sample of a random shuffle, coded set by set as Lee and others do: of each set of workers the sum
    of samples that one needs and exactly all others have; as many as the worker with most needs."""
    draw = random.Random(seed)
    p = (share - 1 / workers) / (1 - 1 / workers)
    queues: dict[frozenset[int], list[int]] = {}
    for _ in range(samples):
        has = {worker for worker in range(workers) if draw.random() < p} | {draw.randrange(workers)}
        needs = draw.randrange(workers)
        if needs not in has:
            queues.setdefault(frozenset(has | {needs}), [0] * workers)[needs] += 1
    return sum(max(queue) for queue in queues.values()) / samples


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_lees_average_is_that_of_random_shuffles(share: float) -> None:
    found = counted_lee(5, share, 200_000, seed=1)
    assert lee_average(5, share) == pytest.approx(found, rel=0.05)


def test_lees_average_where_nothing_but_the_own_part_is_stored() -> None:
    """Pairs of workers swap: the limit of the formula."""
    assert lee_average(6, 1 / 6) == pytest.approx(lee_average(6, 1 / 6 + 1e-5), rel=1e-3)


def test_attia_and_tandon_at_the_points_of_their_theorem() -> None:
    workers = 5
    for i in range(workers + 1):
        share = (1 + i * (workers - 1) / workers) / workers
        assert attia_tandon_worst(workers, share) == pytest.approx((workers - i) / (workers * (i + 1)))
    middle = (1 + 0.5 * (workers - 1) / workers) / workers
    assert attia_tandon_worst(workers, middle) == pytest.approx((1 + (workers - 1) / (2 * workers)) / 2)


@pytest.mark.parametrize(("workers", "r"), [(4, 2), (5, 2), (5, 3), (6, 1)])
def test_coded_mapreduce_counts_out(workers: int, r: int) -> None:
    """Every set of r workers stores one batch for each worker outside. In each set of r + 1, the r parts of what one
    lacks are sent by the others, summed with those of the rest: r + 1 packets of 1/r of a batch."""
    stored_by = list(itertools.combinations(range(workers), r))
    samples = len(stored_by) * workers  # one for each set and each worker that is to have it
    groups = len(list(itertools.combinations(range(workers), r + 1)))
    packets = groups * (r + 1) / r
    assert coded_mapreduce(workers, r / workers) == pytest.approx(packets / samples)


def test_curves_fall_to_nothing_where_everything_is_stored() -> None:
    for curve in CURVES.values():
        values = [curve(15, 1 / 15 + place * (14 / 15) / 50) for place in range(51)]
        assert values == sorted(values, reverse=True) and values[-1] == pytest.approx(0, abs=1e-9)
