"""Data sets that ship with the project, split the same way everywhere."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEST_FRACTION = 0.2
_SPLIT_SEED = 2024

DIGITS = Path(__file__).parent / "digits.csv.gz"
"""E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits" (UCI Machine Learning Repository, 1998;
licence CC BY 4.0), its test part, as scikit-learn has it: 64 pixels from 0 to 16 and the digit in every line."""


@dataclass(frozen=True)
class Shape:
    """The shape of a data set, as a model must know it without loading the data."""

    features: int
    classes: int


SHAPES = {"digits": Shape(features=64, classes=10)}


@dataclass(frozen=True)
class Samples:
    """Samples with their labels."""

    features: NDArray[np.float32]
    """Features as float32 between 0 and 1, shape (samples, features)."""
    labels: NDArray[np.int64]
    """Labels as int64, shape (samples,)."""

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
    """The data set `name` (a key of SHAPES). digits: 1797 handwritten digits of 8x8 pixels."""
    if name != "digits":
        raise KeyError(name)
    table = np.loadtxt(DIGITS, delimiter=",")
    table = np.random.default_rng(_SPLIT_SEED).permutation(table)
    features = np.ascontiguousarray(table[:, :-1] / 16.0, dtype=np.float32)
    labels = np.ascontiguousarray(table[:, -1], dtype=np.int64)
    cut = len(labels) - round(len(labels) * TEST_FRACTION)
    return Dataset(Samples(features[:cut], labels[:cut]), Samples(features[cut:], labels[cut:]))
