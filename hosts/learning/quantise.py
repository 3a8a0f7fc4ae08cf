"""Gradients as integers: sums of them are exact, whatever the order and the path of the additions.

A tensor is scaled by a power of two, 2**exponent, so scaling and its reverse are exact in float64 and only the
rounding to integers loses anything. The exponent of a round follows from the global sums of the round before,
which all workers share, so that all of them scale alike without a word between them. A worker's values may use the
whole range of int32; where a sum leaves it, the server shifts the fragment (gradbed.hosts.learning.fragments)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

START_EXPONENT = 20
"""For the first round: gradients of up to 2^11 fit, and so do sums of as much."""
EXPONENT_LIMIT = 128
HEADROOM_BITS = 6
VALUE_LIMIT = (1 << 31) - 1
"""Largest magnitude of one worker's value."""
FIRST_TOO_LARGE = 1 << 31
"""Smallest magnitude of an integer that has to be clipped."""
CHUNK_VALUES = 1 << 15
"""What `quantise` works on at a time: 128 KiB of float32, which fit into a second-level cache."""


@dataclass(frozen=True)
class Quantised:
    """A tensor as integers."""

    values: NDArray[np.int32]
    clipped: int
    """Values that did not fit (or were not numbers) and were replaced by the nearest that does (or by 0)."""


def quantise(tensor: NDArray[np.floating], exponent: int, out: NDArray[np.int32] | None = None) -> Quantised:
    """Round tensor * 2**exponent to integers (ties to even) and clip them to +-VALUE_LIMIT.

    Works in one pass through chunks that stay in the processor's cache, so it needs no memory besides the result.

    Args:
        tensor: Values of any shape.
        exponent: From -EXPONENT_LIMIT to EXPONENT_LIMIT.
        out: Where to write the integers, of the tensor's shape; contiguous. It may be the memory of a float32 tensor
            itself (`tensor.view(np.int32)`), whose values are then gone. None: a new array.
    """
    values = np.empty(tensor.shape, np.int32) if out is None else out
    floats, integers = tensor.reshape(-1), values.reshape(-1)
    assert np.shares_memory(values, integers) or not values.size
    # Scaling float32 by a power of two is exact, or ends below 2^-126, which rounds to 0 like the exact product.
    native = floats.dtype in (np.float32, np.float64) and abs(exponent) < EXPONENT_LIMIT - 1
    scale = floats.dtype.type(2.0**exponent) if native else None
    buffer = np.empty(min(CHUNK_VALUES, floats.size), floats.dtype if native else np.float64)
    clipped = 0
    for start in range(0, floats.size, CHUNK_VALUES):
        chunk = floats[start : start + CHUNK_VALUES]
        scaled = buffer[: len(chunk)]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if scale is None:
                np.ldexp(chunk.astype(np.float64), exponent, out=scaled)
            else:
                np.multiply(chunk, scale, out=scaled)
        np.rint(scaled, out=scaled)
        # Comparisons with NaN are false: a chunk that has one is bounded, too.
        if not (scaled.min() > -FIRST_TOO_LARGE and scaled.max() < FIRST_TOO_LARGE):
            scaled, replaced = _bounded(scaled)
            clipped += replaced
        np.copyto(integers[start : start + len(chunk)], scaled, casting="unsafe")
    return Quantised(values, clipped)


def _bounded(scaled: NDArray[np.floating]) -> tuple[NDArray[np.float64], int]:
    """Values clipped to +-VALUE_LIMIT, with 0 in place of NaN, and how many of them were replaced."""
    not_numbers = np.isnan(scaled)
    exact = np.where(not_numbers, 0.0, scaled.astype(np.float64))
    replaced = int(np.count_nonzero(np.abs(exact) > VALUE_LIMIT)) + int(np.count_nonzero(not_numbers))
    return np.clip(exact, -VALUE_LIMIT, VALUE_LIMIT), replaced


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


# ---- A scale for each tensor ----


class TensorScales:
    """Scales of tensors that are numbered from 0; sizes: how many values each has."""

    def __init__(self, sizes: Sequence[int], headroom_bits: int = HEADROOM_BITS, exponent: int | None = None) -> None:
        """exponent: all tensors are scaled by 2**exponent in all rounds; None: by what the sums allow."""
        self._sizes = tuple(sizes)
        self._starts = (0, *accumulate(self._sizes))
        self._headroom_bits = headroom_bits
        self._is_fixed = exponent is not None
        self.exponents = [START_EXPONENT if exponent is None else exponent] * len(self._sizes)

    @property
    def values(self) -> int:
        """Return the number of values of all tensors together."""
        return sum(self._sizes)

    def _parts(self, order: Sequence[int]) -> Iterator[tuple[int, slice, slice]]:
        """Tensor, where it lies among tensors in this order, and where among the integers."""
        start = 0
        for tensor in order:
            size = self._sizes[tensor]
            yield tensor, slice(start, start + size), slice(self._starts[tensor], self._starts[tensor] + size)
            start += size

    def quantised(self, order: Sequence[int], gradient: NDArray[np.floating]) -> Quantised:
        """Return a flat gradient as integers; all its tensors lie in this order."""
        values = np.empty(len(gradient), np.int32)
        clipped = 0
        for tensor, part, place in self._parts(order):
            clipped += quantise(gradient[part], self.exponents[tensor], values[place]).clipped
        return Quantised(values, clipped)

    def mean(self, order: Sequence[int], total: NDArray[np.int64], workers: int) -> NDArray[np.float64]:
        """Return the mean of `workers` gradients from their sum, tensors in this order; choose the next scales."""
        mean = np.empty(len(total), np.float64)
        for tensor, part, place in self._parts(order):
            exponent = self.exponents[tensor]
            mean[part] = dequantise(total[place], exponent) / workers
            if not self._is_fixed:
                self.exponents[tensor] = next_exponent(exponent, total[place], self._headroom_bits)
        return mean
