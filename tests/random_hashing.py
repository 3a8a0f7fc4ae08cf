"""What random hashing makes of keys in cells and of flows on paths, to hold switches' hashes against."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest

SIGMAS = 4.5
"""Of the mean of all runs; for normal errors one in 100,000 is farther away."""


def occupied(cells: int, keys: int) -> tuple[float, float]:
    """Mean and variance of the cells that get a key if each key takes any of them (Feller, volume 1, IX.10).

    Over the number of keys, the mean is (A/L)(1 - (1 - 1/A)^L).
    """
    empty = (1 - 1 / cells) ** keys
    two_empty = (1 - 2 / cells) ** keys
    return cells * (1 - empty), cells * empty + cells * (cells - 1) * two_empty - (cells * empty) ** 2


def assert_random(found: Sequence[int], cells: int, keys: int) -> None:
    """Check how many cells got a key, in each of several runs: their mean, and that runs differ as they should."""
    mean, variance = occupied(cells, keys)
    runs = len(found)
    assert sum(found) / runs == pytest.approx(mean, abs=SIGMAS * math.sqrt(variance / runs)), (
        f"{keys} in {cells} cells"
    )
    # Nor are the runs too much alike: chi-squared with as many degrees of freedom as there are runs.
    spread = sum((each - mean) ** 2 for each in found) / variance
    assert spread == pytest.approx(runs, abs=SIGMAS * math.sqrt(2 * runs)), f"{keys} in {cells} cells"


def assert_random_choices(runs: Sequence[Counter[int]], choices: int) -> None:
    """Check how often each of equally likely choices was made, in each of several runs: chi-squared of them all.

    It has choices - 1 degrees of freedom a run, and finds choices that are too even as well as too uneven ones.
    """
    degrees = len(runs) * (choices - 1)
    found = 0.0
    for counts in runs:
        expected = sum(counts.values()) / choices
        found += sum((counts[choice] - expected) ** 2 for choice in range(choices)) / expected
    assert found == pytest.approx(degrees, abs=SIGMAS * math.sqrt(2 * degrees)), f"of {choices} choices"
