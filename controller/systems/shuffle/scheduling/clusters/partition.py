"""Choosing clusters so that every demand is met once and hops are fewest: set packing as an integer program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from gradbed.controller.systems.shuffle.scheduling.clusters.columns import Column


def best_columns(demands: int, offered: Sequence[Column], gap: float = 0.0, nodes: int | None = None) -> list[Column]:
    """Disjoint columns that save most hops together; demands that are in none are sent on their own.

    gap: by what share the savings may be below the most possible. nodes: of the search tree, after which the best
    that was found is taken (a limit in time would give another result on another machine).
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
        options={"mip_rel_gap": gap, **({} if nodes is None else {"node_limit": nodes})},
    )
    if result.x is None:
        return _one_after_the_other(offered)
    return [column for column, chosen in zip(offered, result.x, strict=True) if chosen > 0.5]


def _one_after_the_other(offered: Sequence[Column]) -> list[Column]:
    """Of the columns that save most for each demand, as many as are disjoint."""
    taken: set[int] = set()
    found = []
    for column in sorted(offered, key=lambda column: -column.saved / len(column.demands)):
        if taken.isdisjoint(column.demands):
            taken.update(column.demands)
            found.append(column)
    return found
