"""PowerSGD: a matrix as the product of two thin ones, by one step of power iteration from the last round's result
(Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019). Here each worker has factors of its own, which the server
multiplies and sums, so that a switch cannot sum them. As published, workers agree on the factors by two all-reduces,
which a switch could sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.content import Content

Shape = tuple[int, ...]

_INT32_MAX = (1 << 31) - 1
_MOST = float(1 << 62)


class LowRank:
    """Content: for each tensor in turn its factors as the bits of float32, or, where these would not be shorter (as
    of vectors), its values."""

    can_be_cut = False
    is_placewise = False

    def __init__(self, shapes: Sequence[Shape], rank: int, seed: int) -> None:
        self._shapes = shapes
        self._rank = rank
        generator = np.random.default_rng(seed)
        self._right: dict[int, NDArray[np.float64]] = {
            number: generator.normal(size=(shape[1], rank))
            for number, shape in enumerate(shapes)
            if self._is_factored(shape)
        }

    def length(self, values: int) -> int:
        if values != sum(math.prod(shape) for shape in self._shapes):
            raise ValueError(f"{values} values are no tensors of shapes {self._shapes}")
        return sum(self._words(shape) for shape in self._shapes)

    def drawn(self, values: int, round_number: int) -> None:
        return None

    def _is_factored(self, shape: Shape) -> bool:
        return len(shape) == 2 and self._rank * sum(shape) < math.prod(shape)

    def _words(self, shape: Shape) -> int:
        return self._rank * sum(shape) if self._is_factored(shape) else math.prod(shape)

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        words = [np.zeros(0, np.int64)]
        for number, shape, part in self._parts(gradient, math.prod):
            if number not in self._right:
                words.append(np.clip(part, -_INT32_MAX, _INT32_MAX))
                continue
            matrix = part.reshape(shape).astype(np.float64)
            left, _ = np.linalg.qr(matrix @ self._right[number])
            right = matrix.T @ left
            if right.any():  # else the next round would start from nothing
                self._right[number] = right
            for factor in (left, right):
                words.append(factor.astype(np.float32).view(np.int32).reshape(-1).astype(np.int64))
        content = np.concatenate(words)
        return Content(len(content), content)

    def restored(self, content: NDArray[np.int64]) -> NDArray[np.int64]:
        gradient = [np.zeros(0, np.int64)]
        for _, shape, part in self._parts(content, self._words):
            if not self._is_factored(shape):
                gradient.append(part)
                continue
            factors = part.astype(np.int32).view(np.float32).astype(np.float64)
            left, right = np.split(factors, [shape[0] * self._rank])
            product = left.reshape(shape[0], -1) @ right.reshape(shape[1], -1).T
            gradient.append(np.clip(np.rint(product), -_MOST, _MOST).astype(np.int64).reshape(-1))
        return np.concatenate(gradient)

    def _parts(self, vector: NDArray[Any], size: object) -> Iterator[tuple[int, Shape, NDArray[Any]]]:
        """Number, shape and part of the vector of each tensor; size: of its part, by its shape."""
        assert callable(size)
        start = 0
        for number, shape in enumerate(self._shapes):
            end = start + size(shape)
            yield number, shape, vector[start:end]
            start = end


def nearly_square(values: int) -> tuple[Shape, ...]:
    """Shapes for a gradient of which nothing is known but its length: a matrix, and a vector of what is over."""
    rows = math.isqrt(values)
    if not rows:
        return ()
    columns, over = divmod(values, rows)
    return ((rows, columns), (over,)) if over else ((rows, columns),)
