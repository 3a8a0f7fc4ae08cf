"""The linear program written down a second time, worker by worker and dense, to compare with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.optimize

from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, returned_sum_links
from gradbed.controller.systems.aggregation.placement.rate_program import ReturnedSums

Flow = tuple[str, ...]

Row = tuple[dict[Flow, float], float]
"""Coefficients, and what their sum is at most."""
Crossing = defaultdict[tuple[str, str], dict[Flow, float]]
"""By link, the coefficients of what crosses it."""


def plain_gamma(
    problem: AggregationProblem, programmable: Sequence[str], returned_sums: ReturnedSums | None = None
) -> float:
    """The optimum in bit/s, from the program without groups, scaling, pruning or quotients."""
    rows = _aggregation_rows(problem, programmable)
    crossing = _gradients_crossing(problem, programmable)
    if returned_sums:
        rest: dict[Flow, float] = {("gamma",): 1, ("r",): -1}
        rows.append((rest | {(kind, s): -1 for kind in "ab" for s in programmable}, 0))
        _let_sums_return(problem, programmable, returned_sums, crossing)
    rows += [(flows, float(problem.topology.link(*link).model.rate_bps or 0)) for link, flows in crossing.items()]
    names = list(dict.fromkeys([("gamma",), *(name for flows, _ in rows for name in flows)]))
    matrix = np.array([[flows.get(name, 0) for name in names] for flows, _ in rows])
    profit = np.zeros(len(names))
    profit[0] = -1
    result = scipy.optimize.linprog(profit, matrix, [upper for _, upper in rows], method="highs")
    return float(-result.fun)


def _aggregation_rows(problem: AggregationProblem, programmable: Sequence[str]) -> list[Row]:
    """What workers send, and what switches make of it and can take."""
    sd, workers = problem.server_tor, problem.workers
    rows: list[Row] = []
    for w in workers:
        out: dict[Flow, float] = {("x", w): -1, **{("y", w, s): -1 for s in (*programmable, sd)}}
        rows.append(({("gamma",): 1, **out}, 0))
        rows.append(({("y", w, sd): 1, ("f",): -1}, 0))
        rows += [({("y", w, s): 1, ("a", s): -1, ("b", s): -1}, 0) for s in programmable]
    rows += [({("b", s): 1, ("f",): -1}, 0) for s in programmable]
    if problem.switch_capacity_bps is not None:
        rows += [({("y", w, s): 1.0 for w in workers}, problem.switch_capacity_bps) for s in programmable]
        merged: dict[Flow, float] = {("y", w, sd): 1 for w in workers} | {("b", s): 1 for s in programmable}
        rows.append((merged, problem.switch_capacity_bps))
    return rows


def _gradients_crossing(problem: AggregationProblem, programmable: Sequence[str]) -> Crossing:
    sd, server = problem.server_tor, problem.server
    crossing: Crossing = defaultdict(dict)

    def route(flow: Flow, *nodes: str) -> None:
        for link in pairwise(nodes):
            crossing[link][flow] = 1

    for w in problem.workers:
        tor = problem.topology.attachment(w).name
        route(("x", w), w, *problem.routes.path(tor, sd), server)
        for s in (*programmable, sd):
            route(("y", w, s), w, *problem.routes.path(tor, s))
    for s in programmable:
        route(("a", s), *problem.routes.path(s, sd), server)
        route(("b", s), *problem.routes.path(s, sd))
    route(("f",), sd, server)
    return crossing


def _let_sums_return(
    problem: AggregationProblem, programmable: Sequence[str], returned_sums: ReturnedSums, crossing: Crossing
) -> None:
    sd = problem.server_tor
    sets = [(*programmable, sd)] if returned_sums == "together" else [(s, sd) for s in (*programmable, sd)]
    trees = {s[0]: set(returned_sum_links(problem, s)) for s in sets}
    for link in set().union(*trees.values()):
        if all(link in tree for tree in trees.values()):
            crossing[link]["gamma",] = 1
            continue
        if link in trees[sd]:
            crossing[link]["r",] = 1
        for s in programmable:
            if link in trees.get(s, ()):
                for kind in "ab":
                    crossing[link][kind, s] = crossing[link].get((kind, s), 0) + 1
