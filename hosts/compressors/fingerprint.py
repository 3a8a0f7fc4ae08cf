"""A linear fingerprint of integer vectors: that of a sum is the sum of those of its parts. So a few bytes from each
agent show whether a sum is exactly that of what was sent. Not secure against those who choose the values."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

MODULUS = 1 << 64
_SEED = 1803


@functools.lru_cache(maxsize=4)
def _weights(length: int) -> NDArray[np.uint64]:
    """Odd, so that a change of one value always shows."""
    return np.random.default_rng(_SEED).integers(0, MODULUS, length, np.uint64, endpoint=False) | np.uint64(1)


def fingerprint(values: NDArray[np.int64], length: int, places: NDArray[np.intp] | slice | None = None) -> int:
    """Of a vector of `length` values, these at `places` (None: all of them) and zeros elsewhere. An integer below
    2^64; fingerprints add modulo that."""
    weights = _weights(length)
    if places is not None:
        weights = weights[places]
    return int((values.view(np.uint64) * weights).sum(dtype=np.uint64))
