"""Choosing clusters so that every demand is met once and hops are fewest: set packing as an integer program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from controller.systems.shuffle.scheduling.columns import Column


def best_columns(demands: int, offered: Sequence[Column], gap: float = 0.0) -> list[Column]:
    """Disjoint columns that save most hops together; demands that are in none are sent on their own.

    gap: by what share the savings may be below the most possible.
    """
    if not offered:
        return []
    rows = np.concatenate([column.demands for column in offered])
    starts = np.cumsum([0, *(len(column.demands) for column in offered)])
    packing = csc_array((np.ones(len(rows)), rows, starts), shape=(demands, len(offered)))
    result = milp(
        [-column.saved for column in offered],
        constraints=LinearConstraint(packing, -np.inf, 1),
        integrality=np.ones(len(offered)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": gap},
    )
    assert result.success, result.message
    return [column for column, chosen in zip(offered, result.x, strict=True) if chosen > 0.5]
