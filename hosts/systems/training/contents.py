"""What ranks exchange where sums are really made: int32 values that tell rank, place and collective apart.

Element i of rank r's input to the k-th collective is i (r + 1) + k, modulo 2^32. So every result has a formula
(experiments/systems/training/checks.py), and none of a missing rank, a part at the wrong place and a result of
another collective comes out the same.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

VALUE_BYTES = 4
DIGEST_CHARACTERS = 32


def contents(rank: int, collective: int, values: int) -> NDArray[np.int32]:
    """A rank's input (values,)."""
    found: NDArray[np.int32] = (np.arange(values, dtype=np.int64) * (rank + 1) + collective).astype(np.int32)
    return found


def digest(values: NDArray[np.int32]) -> str:
    """Return the digest of a result, to be compared."""
    return hashlib.sha256(np.ascontiguousarray(values, "<i4").tobytes()).hexdigest()[:DIGEST_CHARACTERS]
