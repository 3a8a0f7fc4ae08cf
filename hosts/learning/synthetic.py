"""Gradients for measurements: random integers, the same for the same seed, worker and round."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from hosts.learning.settings import SyntheticSettings


def synthetic_gradient(settings: SyntheticSettings, worker: int, round_number: int) -> NDArray[np.int32]:
    """A worker's gradient of a round, flat."""
    generator = np.random.default_rng([settings.seed, worker, round_number])
    limit = settings.magnitude
    return generator.integers(-limit, limit, settings.values, dtype=np.int32, endpoint=True)


def sum_digest(total: NDArray[np.int64]) -> str:
    """SHA-256 of a global sum's bytes (int64, little-endian), in hexadecimal."""
    return hashlib.sha256(total.astype("<i8").tobytes()).hexdigest()
