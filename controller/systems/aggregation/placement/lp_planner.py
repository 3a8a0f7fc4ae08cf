"""Placement by the linear program: choose switches by any method, find the best rates, label packets to match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.labels import best_labels
from gradbed.controller.systems.aggregation.placement.methods import NONE, find_method
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice, Rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver, solve_rates
from gradbed.topo.graph import Topology


@dataclass(frozen=True)
class PlacementChoice:
    """The switches that a method chose, and the best rates with them."""

    programmable: tuple[str, ...]
    """Without the server's ToR; by greedy in the order of choice."""
    rates: Rates


def place(
    problem: AggregationProblem,
    maximum: int,
    method: str = "greedy",
    seed: int = 0,
    demand_bps: float | None = None,
    solver: RateSolver | None = None,
) -> PlacementChoice:
    """Choose at most `maximum` switches beside the server's ToR, and the best rates with them (s11 to s16, claim 2).

    Args:
        problem: The job and its network.
        maximum: M: the most programmable switches.
        method: A name of `methods.METHODS`, or of a plug-in.
        seed: The seed of the method random.
        demand_bps: The rate that every worker needs.
        solver: A solver of this problem that has solved programs before.

    Raises:
        UserError: There is no such method, `maximum` is negative or above the number of switches, or the demand
            cannot be met.
    """
    found = find_method(method)
    switches = len(problem.topology.switches)
    if not 0 <= maximum <= switches:
        raise UserError(
            f"the number of programmable switches must be 0 to {switches} (all of this network), got {maximum}"
        )
    solver = solver or RateSolver(problem)
    programmable = tuple(found.choose(solver, maximum, seed))
    rates = solver.rates(programmable, server_tor=method != NONE)
    check_demand(rates, demand_bps)
    return PlacementChoice(programmable, rates)


def check_demand(rates: Rates, demand_bps: float | None) -> None:
    """Check the rate that every worker demands.

    Raises:
        UserError: It is not positive, or higher than these rates.
    """
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
    """An `AggregationPlanner` by the linear program: s1 and s11 to s16 of the source, and labels (s3).

    The rates of its choice are those that the labels follow (`best_labels`); `place` and `solve_rates` give the
    bound. `choose` raises UserError for what cannot be met.
    """

    maximum: int = 0
    """M: the most programmable switches, beside the server's ToR."""
    method: str = "greedy"
    """A name of `methods.METHODS`, or of a plug-in."""
    switch_capacity_bps: float | None = None
    """C: what a switch can sum; None: all that arrives."""
    seed: int = 0
    """The seed of the method random."""
    demand_bps: float | None = None
    """The rate that every worker needs."""
    switches: tuple[str, ...] | None = None
    """Take these instead of placing any."""

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
