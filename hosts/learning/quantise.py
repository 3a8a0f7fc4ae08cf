"""Gradients as integers: sums of them are exact, whatever the order and the path of the additions.

A tensor is scaled by a power of two, 2**exponent, so scaling and its reverse are exact in float64 and only the
rounding to integers loses anything. The exponent of a round follows from the global sums of the round before,
which all workers share, so that all of them scale alike without a word between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

START_EXPONENT = 20
"""For the first round: gradients of up to 2^8 fit with 8 workers."""
HEADROOM_BITS = 6
"""A worker's value may be 2^6 times the largest global sum of the round before without being clipped."""
EXPONENT_LIMIT = 128

_INT32_MAX = (1 << 31) - 1


def value_limit(workers: int) -> int:
    """Largest magnitude of one worker's value such that the sum over all workers fits an int32."""
    return _INT32_MAX // workers


@dataclass(frozen=True)
class Quantised:
    """A tensor as integers."""

    values: NDArray[np.int32]
    clipped: int
    """Values that did not fit (or were not numbers) and were replaced by the nearest that does (or by 0)."""


def quantise(tensor: NDArray[np.floating], exponent: int, limit: int) -> Quantised:
    """Round tensor * 2**exponent to integers (ties to even) and clip them to +-limit."""
    scaled = np.rint(np.ldexp(tensor.astype(np.float64), exponent))
    not_numbers = np.isnan(scaled)
    clipped = int(np.count_nonzero(np.abs(scaled) > limit)) + int(np.count_nonzero(not_numbers))
    bounded = np.clip(np.where(not_numbers, 0.0, scaled), -limit, limit)
    return Quantised(bounded.astype(np.int32), clipped)


def dequantise(total: NDArray[np.int32], exponent: int) -> NDArray[np.float64]:
    """The sum that the integers stand for, exactly."""
    return np.ldexp(total.astype(np.float64), -exponent)


def next_exponent(exponent: int, total: NDArray[np.int32], limit: int) -> int:
    """Exponent for the round after the one whose global sum is `total`.

    The largest with max|total| * 2**HEADROOM_BITS <= limit at the new scale, by bit lengths alone. A sum of
    zeros says nothing about the scale and leaves it.
    """
    largest = int(np.abs(total.astype(np.int64)).max(initial=0))
    if largest == 0:
        return exponent
    shift = limit.bit_length() - 1 - largest.bit_length() - HEADROOM_BITS
    return max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, exponent + shift))
