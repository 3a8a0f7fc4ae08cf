"""Greedy placement of programmable switches: steps s11 to s16 of the source (claim 2), with rules for ties, and a
placement for what packets reach, global sums that come back included.

The source takes any of several equally good switches (s14). The rules for ties, the exchanges and the comparison in
packets are ours (docs/placement.md, "Choosing switches"). The gains of single switches are not submodular: two
switches may be worth nothing alone and much together, so which of several equally good switches is taken decides what
can follow. Among switches that lead to the same gamma

1. one is taken with which the best next switch leads to the highest gamma (one step ahead), as long as this asks for
   at most LOOK_AHEAD_PROGRAMS linear programs in a round: otherwise for those first by 2 and 3 only;
2. then the one that leaves the workers the most room, which is the highest sum of all workers' rates while each has
   gamma;
3. then the one with the lowest switch number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradbed.controller.systems.aggregation.placement.labels import achievable_rates, best_labels
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, highest_degree
from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver

# ---- The source's: s11 to s16, for gradients alone ----


LOOK_AHEAD_PROGRAMS = 256
"""Linear programs that one round may solve to look one step ahead."""
EXCHANGE_PROGRAMS = 256
"""Linear programs that one round of exchanges may solve."""

SAME = 1e-7
"""Rates that differ by less, as a share of the fastest link's rate, are equal here: the solver is exact to less."""


def greedy(solver: RateSolver, maximum: int) -> tuple[str, ...]:
    """Return at most `maximum` switches in the order of choice."""
    return max(greedy_rounds(solver, maximum), key=len, default=())


def greedy_rounds(solver: RateSolver, maximum: int) -> Iterator[tuple[str, ...]]:
    """Yield the switches chosen after each round (s12 to s15), in the order of choice.

    Ends before `maximum` where gamma cannot rise any more, because a worker's own link is full.
    """
    candidates, limit = solver.problem.candidates, solver.model.access_bound
    maximum = min(maximum, len(candidates))
    chosen: tuple[str, ...] = ()
    while len(chosen) < maximum and solver.gamma(chosen) < limit - SAME:
        left = [switch for switch in candidates if switch not in chosen]
        gammas = {switch: solver.gamma((*chosen, switch)) for switch in left}  # s12, s13
        best = max(gammas.values())
        ties = [switch for switch in left if gammas[switch] >= best - SAME]
        if len(ties) > 1 and len(chosen) + 1 < maximum:
            ties = _by_headroom(solver, chosen, ties, best)
            ahead = ties[: max(1, LOOK_AHEAD_PROGRAMS // len(left))]
            if len(ahead) > 1:
                ties = _by_next_step(solver, chosen, left, ahead)
        chosen = (*chosen, ties[0])  # s14
        yield chosen


def exchanged(solver: RateSolver, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Exchange single switches for others, the best exchange first, until none makes gamma higher.

    Nothing is exchanged where trying all exchanges takes more than EXCHANGE_PROGRAMS linear programs.
    """
    while solver.gamma(chosen) < solver.model.access_bound - SAME:
        others = [switch for switch in solver.problem.candidates if switch not in chosen]
        if not 0 < len(chosen) * len(others) <= EXCHANGE_PROGRAMS:
            break
        best = max(
            ((*chosen[:place], switch, *chosen[place + 1 :]) for place in range(len(chosen)) for switch in others),
            key=lambda switches: round(solver.gamma(switches) / SAME),
        )
        if solver.gamma(best) <= solver.gamma(chosen) + SAME:
            break
        chosen = best
    return chosen


def _by_headroom(solver: RateSolver, chosen: tuple[str, ...], ties: list[str], gamma: float) -> list[str]:
    """Sort by the room left to the workers, most first; equal ones stay in order of number."""
    # A tie may reach a little less than the best, and must have a solution all the same.
    floor = max(0.0, gamma - 2 * SAME)
    room = {switch: round(solver.headroom((*chosen, switch), floor) / SAME) for switch in ties}
    return sorted(ties, key=lambda switch: -room[switch])


def _by_next_step(solver: RateSolver, chosen: tuple[str, ...], left: list[str], ties: list[str]) -> list[str]:
    """Sort by gamma after the best next switch, highest first; equal ones stay in order."""
    reach = {
        switch: max(solver.gamma((*chosen, switch, second)) for second in left if second != switch) for switch in ties
    }
    return sorted(ties, key=lambda switch: -round(reach[switch] / SAME))


# ---- For what packets reach ----


def packet_greedy(problem: AggregationProblem, maximum: int) -> tuple[str, ...]:
    """Return at most `maximum` switches: greedy on the program with returned sums, refined (ours)."""
    solver = RateSolver(problem, returned_sums="by-switch")
    return refined(solver, greedy(solver, maximum), maximum)


def refined(solver: RateSolver, chosen: tuple[str, ...], maximum: int) -> tuple[str, ...]:
    """Return the switches after exchanges, or those of highest_degree if packets reach more with them.

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
    """Return the rate that packets with the best labels reach for every worker while global sums come back."""
    labels = best_labels(problem, programmable).designations
    return achievable_rates(problem, labels, returned_sums=True).gamma_bps
