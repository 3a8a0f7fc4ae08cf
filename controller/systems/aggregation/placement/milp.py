"""The best placement as a mixed-integer linear program.

The linear program of rates with all switches, and a binary variable z(s) for each: y(g, s) <= u(g) z(s) for every
group of workers, and the z add up to at most M. u(g) is the most that a worker of the group can send anywhere.
"""

from __future__ import annotations

import numpy as np
import scipy  # of which a part is loaded when it is used: half a second

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.rates.rates import RateSolver

TIME_LIMIT_S = 600.0


def milp(solver: RateSolver, maximum: int, time_limit_s: float = TIME_LIMIT_S) -> tuple[str, ...]:
    """At most `maximum` switches with the highest gamma, in order of number, to HiGHS's relative gap of 0.

    UserError if the solver does not prove an optimum within time_limit_s.
    """
    problem, model = solver.problem, solver.model
    candidates = problem.candidates
    program = model.program(candidates)
    columns, switches, groups = program.matrix.shape[1], len(candidates), len(problem.groups)
    most = np.minimum([group.access_rate_bps / model.scale_bps for group in problem.groups], model.access_bound)
    y = np.array([model.y(place, group) for place in range(switches) for group in range(groups)], dtype=np.int64)
    rows = np.arange(len(y))
    opened = scipy.sparse.csr_array(
        (
            np.concatenate([np.ones(len(y)), -np.tile(most, switches)]),
            (np.concatenate([rows, rows]), np.concatenate([y, columns + rows // groups])),
        ),
        shape=(len(y), columns + switches),
    )
    counted = scipy.sparse.csr_array(
        (np.ones(switches), columns + np.arange(switches), [0, switches]), shape=(1, columns + switches)
    )
    rates = scipy.sparse.hstack([program.matrix, scipy.sparse.csr_array((program.matrix.shape[0], switches))])
    result = scipy.optimize.milp(
        -np.append(program.profit, np.zeros(switches)),
        integrality=np.append(np.zeros(columns), np.ones(switches)),
        bounds=scipy.optimize.Bounds(0, np.append(np.full(columns, np.inf), np.ones(switches))),
        constraints=[
            scipy.optimize.LinearConstraint(rates, -np.inf, program.upper),
            scipy.optimize.LinearConstraint(opened, -np.inf, 0),
            scipy.optimize.LinearConstraint(counted, -np.inf, maximum),
        ],
        options={"time_limit": time_limit_s, "mip_rel_gap": 0},
    )
    if result.status != 0:
        raise UserError(f"no proven optimum for {switches} switches within {time_limit_s:g} s; use the method greedy")
    return tuple(switch for switch, z in zip(candidates, result.x[columns:], strict=True) if z > 0.5)
