"""A gradient cut into fragments, one packet's worth of lanes each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fragment_count(values: int, lanes: int) -> int:
    """Fragments that `values` integers need."""
    return -(-values // lanes)


def cut(values: NDArray[np.int32], lanes: int) -> NDArray[np.int32]:
    """Fragments of a flat vector, shape (fragments, lanes); the last one is filled up with zeros."""
    fragments = np.zeros((fragment_count(len(values), lanes), lanes), np.int32)
    fragments.reshape(-1)[: len(values)] = values
    return fragments


def join(fragments: NDArray[np.int32], values: int) -> NDArray[np.int32]:
    """The flat vector of `values` integers that `cut` made these fragments of."""
    return fragments.reshape(-1)[:values]
