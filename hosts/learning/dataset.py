"""Data sets that ship inside a package, split the same way everywhere."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEST_FRACTION = 0.2
_SPLIT_SEED = 2024


@dataclass(frozen=True)
class Shape:
    """What a model must know of a data set without loading it."""

    features: int
    classes: int


SHAPES = {"digits": Shape(features=64, classes=10)}


@dataclass(frozen=True)
class Samples:
    """features: float32, shape (samples, features), between 0 and 1. labels: int64, shape (samples,)."""

    features: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """Train and test part, disjoint."""

    train: Samples
    test: Samples

    def shard(self, worker: int, workers: int) -> Samples:
        """Worker's part of the training samples: every sample is in exactly one shard, sizes differ by 1 at most."""
        return Samples(
            np.ascontiguousarray(self.train.features[worker::workers]),
            np.ascontiguousarray(self.train.labels[worker::workers]),
        )


@functools.cache
def load(name: str) -> Dataset:
    """The data set `name` (a key of SHAPES). digits: 1797 handwritten digits of 8x8 pixels from scikit-learn."""
    if name != "digits":
        raise KeyError(name)
    from sklearn.datasets import load_digits  # takes a second: only for those who need samples

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    features = np.ascontiguousarray(pixels[order] / 16.0, dtype=np.float32)
    labels = np.ascontiguousarray(labels[order], dtype=np.int64)
    cut = len(labels) - round(len(labels) * TEST_FRACTION)
    return Dataset(Samples(features[:cut], labels[:cut]), Samples(features[cut:], labels[cut:]))
