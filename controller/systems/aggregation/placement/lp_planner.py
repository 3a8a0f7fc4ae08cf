"""The planner that places programmable switches, solves for the best rates and labels packets to reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.labels import best_labels
from gradbed.controller.systems.aggregation.placement.place import NONE, check_demand, place
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rates.rates import solve_rates
from gradbed.topo.graph import Topology


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
