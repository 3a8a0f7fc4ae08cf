"""Which values of a gradient to keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_VALUES = 1 << 17
"""Looked at together: their magnitudes fit a processor's second-level cache."""
SAMPLE_VALUES = 1 << 16
SAFETY = 5.0
"""Standard deviations by which the sample's bound is set too low, so that it rarely leaves out too much."""


def top_k(values: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The places, ascending, of the k values of largest magnitude; of equal ones those that come first.

    values: integers or floats, shape (n,). All places if k is n or more. NaN is never chosen, infinity first. Of a
    long gradient a sample tells a magnitude that somewhat more than k values reach; only these are copied and
    compared exactly. If the sample was misleading, all are.
    """
    if k <= 0:
        return np.zeros(0, np.intp)
    n = len(values)
    if n > 2 * SAMPLE_VALUES and k < n // 2:
        places = at_least(values, _bound(values, k))
        if len(places) >= k:
            return places[_largest(magnitudes(values[places]), k)]
    return _largest(magnitudes(values), k)


def magnitudes(values: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """|values|. Of integers as unsigned ones, which hold that of the least integer, too."""
    found: NDArray[Any] = np.abs(values, out=out)
    return found.view(f"u{found.itemsize}") if found.dtype.kind == "i" else found


def at_least(values: NDArray[Any], bound: Any) -> NDArray[np.intp]:
    """The places, ascending, of values whose magnitude is at least `bound`."""
    room = np.empty(min(BLOCK_VALUES, len(values)), values.dtype)
    found = [np.zeros(0, np.intp)]
    for start in range(0, len(values), BLOCK_VALUES):
        block = values[start : start + BLOCK_VALUES]
        found.append(np.flatnonzero(magnitudes(block, room[: len(block)]) >= bound) + start)
    return np.concatenate(found)


def _bound(values: NDArray[Any], k: int) -> Any:
    """A magnitude that probably somewhat more than k values reach. Of places drawn at random, since every n-th could
    be of one column of a matrix."""
    sample = magnitudes(values[np.random.default_rng(0).integers(0, len(values), SAMPLE_VALUES)])
    if sample.dtype.kind == "f":
        sample = sample[~np.isnan(sample)]
    expected = SAMPLE_VALUES * k / len(values)
    rank = math.ceil(expected + SAFETY * math.sqrt(expected) + SAFETY)
    if rank >= len(sample):
        return sample.dtype.type(0)
    return np.partition(sample, len(sample) - rank)[len(sample) - rank]


def _largest(found: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The places of the k largest of these magnitudes."""
    numbers = int(np.count_nonzero(~np.isnan(found))) if found.dtype.kind == "f" else len(found)
    if k >= numbers:
        return np.flatnonzero(found == found)  # not NaN
    # NaN is sorted behind all numbers.
    least = np.partition(found, numbers - k)[numbers - k]
    above = np.flatnonzero(found > least)
    equal = np.flatnonzero(found == least)[: k - len(above)]
    return np.sort(np.concatenate([above, equal]))
