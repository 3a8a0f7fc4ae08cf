"""Labels of packets for given programmable switches, and what packets with them reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradbed.controller.systems.aggregation.placement.assignment import (
    designations,
    destination_shares,
    rounded_counts,
)
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rates.rate_program import ReturnedSums
from gradbed.controller.systems.aggregation.placement.rates.rates import SPLITS, TOLERANCE, RateSolver
from gradbed.controller.systems.aggregation.placement.rates.realised import realised_rates
from gradbed.controller.systems.aggregation.placement.rates.solution import Rates

MAX_PERIOD = 128
"""Fragments after which the labels repeat, at most. Shares are met to less than 1 %."""


def best_labels(problem: AggregationProblem, programmable: Sequence[str]) -> AggregationChoice:
    """Of several splits of the fragments the one with which packets, global sums included, reach the most.

    The same optimum allows splits that can be nested and splits that cannot, and splits whose gradients travel away
    from the server, where global sums come, too; a program that counts these avoids that (docs/placement.md, "From
    rates to packets").
    """
    found: list[tuple[float, AggregationChoice]] = []
    bound_bps: float | None = None
    programs: tuple[ReturnedSums | None, ...] = (None, "by-switch", "together")
    for returned_sums in programs:
        solver = RateSolver(problem, arrivals=True, returned_sums=returned_sums)
        for splits in SPLITS:
            rates = solver.rates(programmable, splits=splits)
            labels = designations(problem, rates, best_period(problem, rates))
            reached = realised_rates(problem, labels, returned_sums=True).gamma_bps
            found.append((reached, AggregationChoice(rates.programmable, labels, rates)))
            # The first program is a bound for packets; where it is reached, no other labels are better.
            if bound_bps is None:
                bound_bps = rates.gamma_bps
            if reached >= bound_bps * (1 - TOLERANCE):
                return found[-1][1]
    return max(found, key=lambda each: each[0])[1]


def best_period(problem: AggregationProblem, rates: Rates, maximum: int = MAX_PERIOD) -> int:
    """The period of at most `maximum` fragments that comes closest to all workers' shares; the shortest of those.

    Closest: the least of the largest share that a worker sends to some destination beyond its rates.
    """
    exact = np.unique(destination_shares(problem, rates), axis=0)

    def excess(period: int) -> float:
        return float(np.max(rounded_counts(exact, period) / period - exact))

    return min(range(1, maximum + 1), key=lambda period: (round(excess(period), 5), period))
