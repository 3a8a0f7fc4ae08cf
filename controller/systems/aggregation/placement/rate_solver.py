"""Solves problem P2 of the source (claim 3): the highest rate of every worker, and the flows that reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import scipy  # of which a part is loaded when it is used: half a second

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.planner import Rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.quotient import Floats, Signature, SparseProgram, quotient
from gradbed.controller.systems.aggregation.placement.rate_program import (
    GAMMA,
    A,
    B,
    F,
    RateProgram,
    ReturnedSums,
)

TOLERANCE = 1e-9
"""Rates that differ by less than this share of the fastest link's rate are the same."""


Splits = Literal["free", "alike", "same"]
"""Which of the optimal solutions. free: one that loads the links least in total. alike: one in which the workers'
splits differ least, so that the fragments that they send to a switch can be the same. same: the best of those in
which all workers split in the same way, which packets reach, and which may be worse than the optimum."""

SPLITS: tuple[Splits, ...] = get_args(Splits)


def solve_rates(
    problem: AggregationProblem,
    programmable: Sequence[str],
    server_tor: bool = True,
    arrivals: bool = False,
    splits: Splits = "free",
    returned_sums: ReturnedSums | None = None,
) -> Rates:
    """Return optimal rates for these programmable switches (P2 of the source, claim 3).

    Args:
        problem: The job and its network.
        programmable: S: names of the programmable switches.
        server_tor: Whether the server's ToR sums, too, as sd does in P2.
        arrivals: Hold what packets obey on arrival (`RateProgram`; ours).
        splits: Which of the optimal solutions.
        returned_sums: Count the global sums that come back (`RateProgram`; ours).

    Raises:
        UserError: Some of these switches cannot be programmable.
    """
    problem.check_programmable(programmable)
    return RateSolver(problem, arrivals, returned_sums).rates(programmable, server_tor, splits)


class RateSolver:
    """Solve P2 (s13 of the source) for many sets of programmable switches of one problem.

    Programs that are alike are solved once.
    """

    def __init__(
        self, problem: AggregationProblem, arrivals: bool = False, returned_sums: ReturnedSums | None = None
    ) -> None:
        self.problem = problem
        self.model = RateProgram(problem, arrivals, returned_sums)
        self.solved = self.asked = 0
        """Programs solved, and programs asked for."""
        self._bound = 2.0**-20
        self._known: dict[Signature, float] = {}

    def gamma(self, programmable: Sequence[str], server_tor: bool = True) -> float:
        """Return gamma, the optimum of P2, as a share of the fastest link's rate."""
        program = self.model.program(programmable, server_tor)
        while True:
            gamma = self._optimum(self.model.without_slack_rows(program, self._bound))
            if gamma <= self._bound:
                return gamma
            self._bound *= 2

    def headroom(self, programmable: Sequence[str], gamma: float) -> float:
        """Return the highest sum of all workers' rates while each has at least `gamma` (ours; it breaks ties of s14).

        Rates are shares of the fastest link's rate.
        """
        program = self.model.program(programmable)
        return self._optimum(_at_least(program, gamma, profit=self.model.worker_rates(len(programmable))))

    def rates(self, programmable: Sequence[str], server_tor: bool = True, splits: Splits = "free") -> Rates:
        """Return an optimal solution, chosen among the others as `splits` says.

        It sums at sd rather than sending two sums to the server where this makes no difference.
        """
        count = len(programmable)
        program = self.model.with_spread(self.model.program(programmable, server_tor), count, splits == "same")
        gamma = float(_solve(program)[GAMMA])
        loads = np.append(self.model.link_loads(programmable), 0.0)
        # Less than any detour costs.
        loads[[self.model.block(place) + A for place in range(count)]] += 1e-3
        cost = loads if splits == "free" else self.model.spread(count) + 1e-3 * loads / loads.max()
        flows = _solve(_at_least(program, gamma * (1 - TOLERANCE), profit=-cost))
        return self._named(tuple(programmable), gamma, np.where(flows < TOLERANCE, 0.0, flows))

    def _optimum(self, program: SparseProgram) -> float:
        self.asked += 1
        reduced = quotient(program)
        if reduced.signature not in self._known:
            self.solved += 1
            self._known[reduced.signature] = float(reduced.program.profit @ _highs(reduced.program))
        return self._known[reduced.signature]

    def _named(self, programmable: tuple[str, ...], gamma: float, flows: Floats) -> Rates:
        model, scale = self.model, self.model.scale_bps
        y: dict[str, dict[str, float]] = {}
        x: dict[str, float] = {}
        for index, group in enumerate(self.problem.groups):
            sent = {switch: flows[model.y(place, index)] for place, switch in enumerate(programmable)}
            sent[self.problem.server_tor] = flows[model.y_server_tor(index)]
            # A worker that the solver lets send more than gamma sends gamma, split in the same way.
            share = gamma * scale / (sum(sent.values()) + flows[model.x(index)])
            for worker in group.workers:
                y[worker] = {switch: float(share * rate) for switch, rate in sent.items() if rate > 0}
                x[worker] = float(share * flows[model.x(index)])
        firsts = {switch: model.block(place) for place, switch in enumerate(programmable)}
        return Rates(
            programmable,
            gamma * scale,
            y,
            x,
            {switch: float(scale * flows[first + A]) for switch, first in firsts.items()},
            {switch: float(scale * flows[first + B]) for switch, first in firsts.items()},
            float(scale * flows[F]),
        )


def _at_least(program: SparseProgram, gamma: float, profit: Floats) -> SparseProgram:
    lower = program.lower.copy()
    lower[GAMMA] = gamma
    return replace(program, profit=profit, lower=lower)


def _solve(program: SparseProgram) -> Floats:
    reduced = quotient(program)
    return _highs(reduced.program)[reduced.column_class]


def _highs(program: SparseProgram) -> Floats:
    """Solve by HiGHS (Huangfu and Hall, "Parallelizing the dual revised simplex method", 2018)."""
    result = scipy.optimize.linprog(
        -program.profit,
        A_ub=program.matrix,
        b_ub=program.upper,
        bounds=np.column_stack([program.lower, np.full(len(program.lower), np.inf)]),
        method="highs-ds",
        options={
            "presolve": False,  # takes longer than it saves: the quotient is small already
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if result.x is None:
        raise UserError(f"the solver found no rates: {result.message}")
    solution: Floats = result.x
    return solution
