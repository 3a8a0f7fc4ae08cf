"""Greedy placement for what packets reach, global sums that come back included."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.controller.systems.aggregation.placement.baselines import highest_degree
from gradbed.controller.systems.aggregation.placement.greedy import exchanged, greedy
from gradbed.controller.systems.aggregation.placement.labels import best_labels
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rates.rates import RateSolver
from gradbed.controller.systems.aggregation.placement.rates.realised import realised_rates


def packet_greedy(problem: AggregationProblem, maximum: int) -> tuple[str, ...]:
    """At most `maximum` switches: greedy on the program with returned sums, refined."""
    solver = RateSolver(problem, returned_sums="by-switch")
    return refined(solver, greedy(solver, maximum), maximum)


def refined(solver: RateSolver, chosen: tuple[str, ...], maximum: int) -> tuple[str, ...]:
    """The switches after exchanges, or those of highest_degree if packets reach more with them.

    The program does not know fragments that cannot be nested or divided; so packets decide in the end, and never
    reach less than with highest_degree.
    """
    problem = solver.problem
    chosen = exchanged(solver, chosen)
    rival = highest_degree(problem, maximum)
    if set(rival) == set(chosen):
        return chosen
    reached_bps = packet_rate_bps(problem, chosen)
    bounds = RateSolver(problem, arrivals=True)
    if bounds.gamma(rival) * bounds.model.scale_bps <= reached_bps:
        return chosen
    return rival if packet_rate_bps(problem, rival) > reached_bps else chosen


def packet_rate_bps(problem: AggregationProblem, programmable: Sequence[str]) -> float:
    """What packets with the best labels reach for every worker while global sums come back."""
    labels = best_labels(problem, programmable).designations
    return realised_rates(problem, labels, returned_sums=True).gamma_bps
