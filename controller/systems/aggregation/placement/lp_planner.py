"""The planner that places programmable switches, solves for the best rates and labels packets to reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.planning.routing import Routes
from controller.systems.aggregation.placement.assignment import designations, destination_shares, rounded_counts
from controller.systems.aggregation.placement.place import NONE, check_demand, place
from controller.systems.aggregation.placement.planner import AggregationChoice
from controller.systems.aggregation.placement.problem import AggregationProblem
from controller.systems.aggregation.placement.rates import SPLITS, Rates, RateSolver, solve_rates
from controller.systems.aggregation.placement.realised import realised_rates
from controller.systems.aggregation.placement.returned_sums import returned_sum_links
from topo.graph import Topology

MAX_PERIOD = 128
"""Fragments after which the labels repeat, at most. Shares are met to less than 1 %."""


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


def best_labels(problem: AggregationProblem, programmable: Sequence[str]) -> AggregationChoice:
    """Of several ways to split the fragments the one with which packets, global sums included, reach the most.

    The same optimum allows splits that can be nested and splits that cannot, and splits whose gradients travel away
    from the server, where global sums come, too; a program that counts these avoids that, if only for one tree that
    passes through all switches (docs/placement.md, "From rates to packets").
    """
    links = returned_sum_links(problem, (*programmable, problem.server_tor))
    found: list[tuple[float, AggregationChoice]] = []
    for solver in (RateSolver(problem, arrivals=True), RateSolver(problem, arrivals=True, returned_sums=links)):
        for splits in SPLITS:
            rates = solver.rates(programmable, splits=splits)
            labels = designations(problem, rates, best_period(problem, rates))
            reached = realised_rates(problem, labels, returned_sums=True).gamma_bps
            found.append((reached, AggregationChoice(rates.programmable, labels, rates)))
    return max(found, key=lambda each: each[0])[1]


def best_period(problem: AggregationProblem, rates: Rates, maximum: int = MAX_PERIOD) -> int:
    """The period of at most `maximum` fragments that comes closest to all workers' shares; the shortest of those.

    Closest: the least of the largest share that a worker sends to some destination beyond its rates.
    """
    exact = np.unique(destination_shares(problem, rates), axis=0)

    def excess(period: int) -> float:
        return float(np.max(rounded_counts(exact, period) / period - exact))

    return min(range(1, maximum + 1), key=lambda period: (round(excess(period), 5), period))
