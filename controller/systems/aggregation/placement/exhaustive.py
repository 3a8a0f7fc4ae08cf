"""The best placement by trying them all."""

from __future__ import annotations

import math
from itertools import combinations

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.rates.rates import TOLERANCE, RateSolver

MAX_PLACEMENTS = 200_000


def exhaustive(solver: RateSolver, maximum: int) -> tuple[str, ...]:
    """The `maximum` switches with the highest gamma; of equally good sets the first in order of switch numbers.

    More switches never lower gamma, so smaller sets need not be tried. UserError if there are more than
    MAX_PLACEMENTS sets.
    """
    candidates = solver.problem.candidates
    size = min(maximum, len(candidates))
    count = math.comb(len(candidates), size)
    if count > MAX_PLACEMENTS:
        raise UserError(
            f"{count} placements of {size} among {len(candidates)} switches are too many to try "
            f"(at most {MAX_PLACEMENTS}); use the method greedy or milp"
        )
    limit = solver.model.access_bound
    best: tuple[str, ...] = ()
    best_gamma = -math.inf
    for chosen in combinations(candidates, size):
        gamma = solver.gamma(chosen)
        if gamma > best_gamma + TOLERANCE:
            best, best_gamma = chosen, gamma
            if gamma >= limit - TOLERANCE:
                break
    return best
