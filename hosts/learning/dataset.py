"""Data sets that ship inside a package, split the same way everywhere."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path

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
    table = np.loadtxt(_digits_file(), delimiter=",")
    table = np.random.default_rng(_SPLIT_SEED).permutation(table)
    features = np.ascontiguousarray(table[:, :-1] / 16.0, dtype=np.float32)
    labels = np.ascontiguousarray(table[:, -1], dtype=np.int64)
    cut = len(labels) - round(len(labels) * TEST_FRACTION)
    return Dataset(Samples(features[:cut], labels[:cut]), Samples(features[cut:], labels[cut:]))


def _digits_file() -> Path:
    """Where sklearn.datasets.load_digits reads them, too; importing that takes half a second of CPU time."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None and package.submodule_search_locations
    return Path(package.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
