"""A gradient cut into fragments, one packet's worth of lanes each."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", np.int32, np.int64)


def fragment_count(values: int, lanes: int) -> int:
    """Fragments that `values` integers need."""
    return -(-values // lanes)


def cut(values: NDArray[Integer], lanes: int) -> NDArray[Integer]:
    """Fragments of a flat vector, shape (fragments, lanes); the last one is filled up with zeros."""
    fragments = np.zeros((fragment_count(len(values), lanes), lanes), values.dtype)
    fragments.reshape(-1)[: len(values)] = values
    return fragments


def join(fragments: NDArray[Integer], values: int) -> NDArray[Integer]:
    """The flat vector of `values` integers that `cut` made these fragments of."""
    return fragments.reshape(-1)[:values]
