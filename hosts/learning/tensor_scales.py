"""Gradients of several tensors as integers, each tensor at a scale of its own, and their mean back.

The quantisation of gradbed.hosts.learning.quantise for programs whose tensors come in any order; as integers they lie
in the order of their numbers, always, so that what is held back of a round stays in its place. After every round the
scales follow from the global sum, so that workers that take in the same sums scale alike without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.quantise import START_EXPONENT, Quantised, dequantise, next_exponent, quantise
from gradbed.hosts.learning.settings import HEADROOM_BITS


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
        """Of all tensors together."""
        return sum(self._sizes)

    def _parts(self, order: Sequence[int]) -> Iterator[tuple[int, slice, slice]]:
        """Tensor, where it lies among tensors in this order, and where among the integers."""
        start = 0
        for tensor in order:
            size = self._sizes[tensor]
            yield tensor, slice(start, start + size), slice(self._starts[tensor], self._starts[tensor] + size)
            start += size

    def quantised(self, order: Sequence[int], gradient: NDArray[np.floating]) -> Quantised:
        """Of a flat gradient whose tensors, all of them, lie in this order."""
        values = np.empty(len(gradient), np.int32)
        clipped = 0
        for tensor, part, place in self._parts(order):
            clipped += quantise(gradient[part], self.exponents[tensor], values[place]).clipped
        return Quantised(values, clipped)

    def mean(self, order: Sequence[int], total: NDArray[np.int64], workers: int) -> NDArray[np.float64]:
        """What the sum of `workers` gradients stands for, divided by their number, its tensors in this order; chooses
        the next scales."""
        mean = np.empty(len(total), np.float64)
        for tensor, part, place in self._parts(order):
            exponent = self.exponents[tensor]
            mean[part] = dequantise(total[place], exponent) / workers
            if not self._is_fixed:
                self.exponents[tensor] = next_exponent(exponent, total[place], self._headroom_bits)
        return mean
