"""Placement of programmable switches by any method behind one function, and the planner that goes on from there: it
solves for the best rates and labels packets to reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.assignment import best_labels
from gradbed.controller.systems.aggregation.placement.baselines import (
    every_tor,
    highest_degree,
    merging_switches,
    random_switches,
)
from gradbed.controller.systems.aggregation.placement.exhaustive import exhaustive
from gradbed.controller.systems.aggregation.placement.greedy import greedy, packet_greedy
from gradbed.controller.systems.aggregation.placement.milp import milp
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice, Rates
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rates.rates import RateSolver, solve_rates
from gradbed.topo.graph import Topology

NONE = "none"

METHODS: dict[str, Callable[[RateSolver, int, int], tuple[str, ...]]] = {
    "greedy": lambda solver, maximum, seed: packet_greedy(solver.problem, maximum),
    "greedy-gradients": lambda solver, maximum, seed: greedy(solver, maximum),
    "exhaustive": lambda solver, maximum, seed: exhaustive(solver, maximum),
    "milp": lambda solver, maximum, seed: milp(solver, maximum),
    NONE: lambda solver, maximum, seed: (),
    "server-tor": lambda solver, maximum, seed: (),
    "every-tor": lambda solver, maximum, seed: every_tor(solver.problem),
    "random": lambda solver, maximum, seed: random_switches(solver.problem, maximum, seed),
    "highest-degree": lambda solver, maximum, seed: highest_degree(solver.problem, maximum),
    "grid": lambda solver, maximum, seed: merging_switches(solver.problem),
}
"""By name: (solver, M, seed) to switches. greedy: for packets, with the global sums that come back. greedy-gradients:
the source's, for the optimum of its program, which knows gradients alone; so are exhaustive and milp. none: not even
the server's ToR sums. server-tor: only it does (ATP; Lao et al., NSDI 2021). every-tor and grid take as many switches
as they need, whatever M is."""


@dataclass(frozen=True)
class PlacementChoice:
    """programmable: the chosen switches without the server's ToR, by greedy in the order of choice."""

    programmable: tuple[str, ...]
    rates: Rates


def place(
    problem: AggregationProblem,
    maximum: int,
    method: str = "greedy",
    seed: int = 0,
    demand_bps: float | None = None,
    solver: RateSolver | None = None,
) -> PlacementChoice:
    """Choose at most `maximum` switches beside the server's ToR, and the best rates with them.

    seed: of the method random. demand_bps: the rate that every worker needs. solver: one of this problem that has
    solved programs before. UserError if the method is unknown, `maximum` is negative or above the number of
    switches, or the demand cannot be met.
    """
    if method not in METHODS:
        raise UserError(f"unknown placement method {method!r}: choose one of {', '.join(METHODS)}")
    switches = len(problem.topology.switches)
    if not 0 <= maximum <= switches:
        raise UserError(
            f"the number of programmable switches must be 0 to {switches} (all of this network), got {maximum}"
        )
    solver = solver or RateSolver(problem)
    programmable = METHODS[method](solver, maximum, seed)
    rates = solver.rates(programmable, server_tor=method != NONE)
    check_demand(rates, demand_bps)
    return PlacementChoice(programmable, rates)


def check_demand(rates: Rates, demand_bps: float | None) -> None:
    """UserError if a rate is demanded for every worker that is not positive or higher than these."""
    if demand_bps is None:
        return
    if not demand_bps > 0:
        raise UserError(f"the demanded rate must be positive, got {demand_bps:g} bit/s")
    if rates.gamma_bps < demand_bps * (1 - 1e-9):
        raise UserError(
            f"the demand of {demand_bps:g} bit/s for each worker cannot be met: {len(rates.programmable)} "
            f"programmable switches beside the server's ToR reach {rates.gamma_bps:g} bit/s; "
            "allow more switches or ask for less"
        )


# ---- The planner ----


@dataclass(frozen=True)
class LpPlanner:
    """An AggregationPlanner on the linear program.

    maximum: programmable switches at most, beside the server's ToR. method: one of place.METHODS. switches: take
    these instead of placing any. switch_capacity_bps: C of the linear program. seed: of the method random.
    demand_bps: the rate that every worker needs. `choose` raises UserError if any of them cannot be met. The rates
    of its choice are those that the labels follow (best_labels); the bound is that of place() or solve_rates().
    """

    maximum: int = 0
    method: str = "greedy"
    switch_capacity_bps: float | None = None
    seed: int = 0
    demand_bps: float | None = None
    switches: tuple[str, ...] | None = None

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        problem = AggregationProblem(topology, routes, tuple(workers), server, self.switch_capacity_bps)
        if self.switches is not None:
            problem.check_programmable(self.switches)
            programmable, server_tor = self.switches, True
        else:
            programmable = place(problem, self.maximum, self.method, self.seed).programmable
            server_tor = self.method != NONE
        if not server_tor:
            rates = solve_rates(problem, (), server_tor=False)
            check_demand(rates, self.demand_bps)
            return AggregationChoice((), dict.fromkeys(problem.workers, ()), rates)
        check_demand(solve_rates(problem, programmable, arrivals=True), self.demand_bps)
        return best_labels(problem, programmable)
