"""A linear fingerprint of integer vectors: that of a sum is the sum of those of its parts. So a few bytes from each
agent show whether a sum is exactly that of what was sent. Not secure against those who choose the values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODULUS = 1 << 64
_SEED = 1803
_ROW_VALUES = 1 << 12
_ROWS_TOGETHER = 1 << 5
"""Their int64 fit a processor's second-level cache."""
_PLACES_TOGETHER = 1 << 14
"""And theirs with their weights."""


@functools.lru_cache(maxsize=4)
def _weights(rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A value's weight is its row's times its column's: odd, so that a change of one value always shows."""
    drawn = np.random.default_rng(_SEED).integers(0, MODULUS, _ROW_VALUES + rows, np.uint64, endpoint=False)
    drawn |= np.uint64(1)
    return drawn[_ROW_VALUES:], drawn[:_ROW_VALUES]


def fingerprint(values: NDArray[Any], length: int, places: NDArray[np.intp] | slice | None = None) -> int:
    """Return the fingerprint of a vector of `length` integers, these at `places` (None: all of them) and zeros
    elsewhere.

    An integer below 2^64; fingerprints add modulo that.
    """
    of_rows, of_columns = _weights(-(-length // _ROW_VALUES))
    if isinstance(places, slice):
        places = np.arange(length)[places] if places != slice(None) else None
    total = 0
    if places is not None:
        for start in range(0, len(places), _PLACES_TOGETHER):
            some = places[start : start + _PLACES_TOGETHER]
            weights = of_rows[some // _ROW_VALUES] * of_columns[some % _ROW_VALUES]
            block = values[start : start + _PLACES_TOGETHER].astype(np.int64).view(np.uint64)
            total += int((block * weights).sum(dtype=np.uint64))
        return total % MODULUS
    together = _ROWS_TOGETHER * _ROW_VALUES
    for start in range(0, length, together):
        block = values[start : start + together].astype(np.int64).view(np.uint64)
        rows, rest = divmod(len(block), _ROW_VALUES)
        first = start // _ROW_VALUES
        sums = block[: rows * _ROW_VALUES].reshape(rows, _ROW_VALUES) @ of_columns
        total += int((sums * of_rows[first : first + rows]).sum(dtype=np.uint64))
        if rest:
            total += int((block[-rest:] * of_columns[:rest]).sum(dtype=np.uint64)) * int(of_rows[first + rows])
    return total % MODULUS
