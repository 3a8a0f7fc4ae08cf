"""What every rank must hold after a collective with contents, by formula: nothing is sent or added up here.

Element i of rank r's input to the k-th collective is i (r + 1) + k, modulo 2^32 (hosts/systems/training/contents.py).
A sum over ranks is therefore i times the sum of (r + 1), plus k times how many there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def expected_result(
    operation: str, group: tuple[int, ...], rank: int, collective: int, values: int, root: int | None
) -> NDArray[np.int64] | None:
    """Of a rank (values,), to be taken modulo 2^32; None: it gets none. values: of each rank's input. Of p ranks the
    one at place k keeps the part from k values / p to (k + 1) values / p, rounded down."""
    place, count = group.index(rank), len(group)
    weight = sum(member + 1 for member in group)
    first, last = place * values // count, (place + 1) * values // count
    if operation == "all-reduce" or (operation == "reduce" and rank == root):
        return np.arange(values) * weight + collective * count
    if operation == "reduce-scatter":
        return np.arange(first, last) * weight + collective * count
    if operation == "all-gather" or (operation == "gather" and rank == root):
        return np.concatenate([np.arange(values) * (member + 1) + collective for member in group])
    if operation == "all-to-all":
        return np.concatenate([np.arange(first, last) * (member + 1) + collective for member in group])
    if operation == "broadcast" and root is not None:
        return np.arange(values) * (root + 1) + collective
    if operation == "scatter" and root is not None:
        return np.arange(first, last) * (root + 1) + collective
    return None
