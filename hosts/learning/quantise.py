"""Gradients as integers: sums of them are exact, whatever the order and the path of the additions.

A tensor is scaled by a power of two, 2**exponent, so scaling and its reverse are exact in float64 and only the
rounding to integers loses anything. The exponent of a round follows from the global sums of the round before,
which all workers share, so that all of them scale alike without a word between them. A worker's values may use the
whole range of int32; where a sum leaves it, the server shifts the fragment (hosts.learning.shifted_sums).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

START_EXPONENT = 20
"""For the first round: gradients of up to 2^11 fit, and so do sums of as much."""
EXPONENT_LIMIT = 128
VALUE_LIMIT = (1 << 31) - 1
"""Largest magnitude of one worker's value."""


@dataclass(frozen=True)
class Quantised:
    """A tensor as integers."""

    values: NDArray[np.int32]
    clipped: int
    """Values that did not fit (or were not numbers) and were replaced by the nearest that does (or by 0)."""


def quantise(tensor: NDArray[np.floating], exponent: int) -> Quantised:
    """Round tensor * 2**exponent to integers (ties to even) and clip them to +-VALUE_LIMIT."""
    scaled = np.rint(np.ldexp(tensor.astype(np.float64), exponent))
    not_numbers = np.isnan(scaled)
    clipped = int(np.count_nonzero(np.abs(scaled) > VALUE_LIMIT)) + int(np.count_nonzero(not_numbers))
    bounded = np.clip(np.where(not_numbers, 0.0, scaled), -VALUE_LIMIT, VALUE_LIMIT)
    return Quantised(bounded.astype(np.int32), clipped)


def dequantise(total: NDArray[np.int64], exponent: int) -> NDArray[np.float64]:
    """The sum that the integers (below 2^53) stand for, exactly."""
    return np.ldexp(total.astype(np.float64), -exponent)


def next_exponent(exponent: int, total: NDArray[np.int64], headroom_bits: int) -> int:
    """Exponent for the round after the one whose global sum is `total`.

    The largest with max|total| * 2**headroom_bits <= VALUE_LIMIT at the new scale, by bit lengths alone. A sum of
    zeros says nothing about the scale and leaves it.
    """
    largest = int(np.abs(total).max(initial=0))
    if largest == 0:
        return exponent
    shift = VALUE_LIMIT.bit_length() - 1 - largest.bit_length() - headroom_bits
    return max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, exponent + shift))
