"""Placements to compare with: each returns the programmable switches beside the server's ToR."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem


def every_tor(problem: AggregationProblem) -> tuple[str, ...]:
    """The ToR of every worker."""
    tors = {group.tor for group in problem.groups}
    return tuple(switch for switch in problem.candidates if switch in tors)


def random_switches(problem: AggregationProblem, maximum: int, seed: int) -> tuple[str, ...]:
    """`maximum` switches drawn with a generator of this seed; a larger `maximum` only adds to the end."""
    order = list(problem.candidates)
    random.Random(seed).shuffle(order)
    return tuple(order[:maximum])


def highest_degree(problem: AggregationProblem, maximum: int) -> tuple[str, ...]:
    """The `maximum` switches with the most links, the lower number first among equal ones."""
    degree = {switch: len(problem.topology.neighbours(switch)) for switch in problem.candidates}
    return tuple(sorted(problem.candidates, key=lambda switch: -degree[switch])[:maximum])


def merging_switches(problem: AggregationProblem) -> tuple[str, ...]:
    """Every switch at which routes from workers to the server meet, however many: routes that aggregate wherever
    they can, as those of GRID (Fang, Zhao, Xu et al., "GRID: Gradient Routing with In-network Aggregation for
    Distributed Training", IEEE/ACM Transactions on Networking 2023) without its limit of one switch for a gradient.
    """
    inputs: defaultdict[str, set[str]] = defaultdict(set)
    for group in problem.groups:
        inputs[group.tor].update(group.workers)
        path = problem.routes.path(group.tor, problem.server_tor)
        for before, switch in pairwise(path):
            inputs[switch].add(before)
    return tuple(switch for switch in problem.candidates if len(inputs[switch]) > 1)
