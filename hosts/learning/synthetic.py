"""Gradients for measurements: random integers, the same for the same seed, worker and round."""

from __future__ import annotations

import hashlib
from collections import deque

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.settings import SyntheticSettings


def synthetic_gradient(settings: SyntheticSettings, worker: int, round_number: int) -> NDArray[np.int32]:
    """A worker's gradient of a round, flat."""
    generator = np.random.default_rng([settings.seed, worker, round_number])
    limit = settings.magnitude
    return generator.integers(-limit, limit, settings.values, dtype=np.int32, endpoint=True)


_latest: deque[tuple[NDArray[np.int64], str]] = deque(maxlen=4)
"""Sums and their digests. All workers of a job get the same sum: it takes a tenth of the time to see that."""


def sum_digest(total: NDArray[np.int64]) -> str:
    """SHA-256 of a global sum's bytes (int64, little-endian), in hexadecimal."""
    for known, digest in _latest:
        if np.array_equal(known[:64], total[:64]) and np.array_equal(known, total):
            return digest
    sums = total.astype("<i8")
    _latest.appendleft((sums, hashlib.sha256(sums.tobytes()).hexdigest()))
    return _latest[0][1]
