"""Arrival processes: means, regularity, bursts, and the same times for the same seed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from gradbed.hosts.traffic.config import Arrivals
from gradbed.hosts.traffic.schedule import BLOCK, arrival_times

DISTANCE_NS = 1000.0


def times(arrivals: Arrivals, blocks: int = 200, seed: int = 1) -> np.ndarray:
    return np.concatenate(list(islice(arrival_times(arrivals, DISTANCE_NS, np.random.default_rng(seed)), blocks)))


@pytest.mark.parametrize("kind", ["constant", "poisson", "on-off"])
def test_times_rise_and_have_the_mean_distance(kind: str) -> None:
    found = times(Arrivals(kind=kind, on_us=20, off_us=30), blocks=800)
    assert len(found) == 800 * BLOCK and (np.diff(found) >= 0).all() and found[0] >= 0
    assert found[-1] / len(found) == pytest.approx(DISTANCE_NS, rel=0.02)


def test_constant_distances_are_equal_and_begin_anywhere() -> None:
    found = times(Arrivals(kind="constant"))
    assert np.allclose(np.diff(found), DISTANCE_NS)
    assert 0 <= found[0] < DISTANCE_NS and found[0] != times(Arrivals(kind="constant"), seed=2)[0]


def test_poisson_distances_are_exponential() -> None:
    distances = np.diff(times(Arrivals(kind="poisson"), blocks=400))
    assert distances.std() == pytest.approx(DISTANCE_NS, rel=0.02)
    assert (distances < DISTANCE_NS).mean() == pytest.approx(1 - np.exp(-1), abs=0.01)


def test_constant_bursts_are_those_of_all_streams() -> None:
    found = times(Arrivals(kind="on-off", on_us=10, off_us=30, bursts="constant"))
    assert (found == times(Arrivals(kind="on-off", on_us=10, off_us=30, bursts="constant"), seed=2)).all()
    # A quarter of the time at four times the rate: 40 arrivals in each 40 us, all in their first 10 us.
    assert (found % 40_000 < 10_000).all()
    assert (np.bincount((found // 40_000).astype(int))[:-1] == 40).all()


def test_the_same_seed_makes_the_same_times() -> None:
    arrivals = Arrivals(kind="on-off")
    assert (times(arrivals) == times(arrivals)).all()
    assert not (times(arrivals) == times(arrivals, seed=2)).all()
