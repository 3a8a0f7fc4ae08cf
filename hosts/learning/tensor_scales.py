"""Gradients of several tensors as integers, each tensor at a scale of its own, and their mean back.

The quantisation of hosts.learning.quantise for programs whose tensors come in any order: after every round the
scales follow from the global sum, so that workers that take in the same sums scale alike without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hosts.learning.quantise import START_EXPONENT, Quantised, dequantise, next_exponent, quantise
from hosts.learning.settings import HEADROOM_BITS


class TensorScales:
    """Scales of tensors that are numbered from 0; sizes: how many values each has."""

    def __init__(self, sizes: Sequence[int], headroom_bits: int = HEADROOM_BITS) -> None:
        self._sizes = tuple(sizes)
        self._headroom_bits = headroom_bits
        self.exponents = [START_EXPONENT] * len(self._sizes)

    @property
    def values(self) -> int:
        """Of all tensors together."""
        return sum(self._sizes)

    def _parts(self, order: Sequence[int]) -> Iterator[tuple[int, slice]]:
        start = 0
        for tensor in order:
            yield tensor, slice(start, start + self._sizes[tensor])
            start += self._sizes[tensor]

    def quantised(self, order: Sequence[int], gradient: NDArray[np.floating]) -> Quantised:
        """A flat gradient whose tensors lie in this order."""
        values = np.empty(len(gradient), np.int32)
        clipped = 0
        for tensor, part in self._parts(order):
            of_tensor = quantise(gradient[part], self.exponents[tensor])
            values[part] = of_tensor.values
            clipped += of_tensor.clipped
        return Quantised(values, clipped)

    def mean(self, order: Sequence[int], total: NDArray[np.int64], workers: int) -> NDArray[np.float64]:
        """What the sum of `workers` gradients stands for, divided by their number; chooses the next scales."""
        mean = np.empty(len(total), np.float64)
        for tensor, part in self._parts(order):
            exponent = self.exponents[tensor]
            mean[part] = dequantise(total[part], exponent) / workers
            self.exponents[tensor] = next_exponent(exponent, total[part], self._headroom_bits)
        return mean
