"""Placement methods by name: each chooses the switches that sum besides the server's top-of-rack switch (ToR).

A method takes a `RateSolver`, the number M of switches that may be programmable, and a seed, and returns names of
switches. `placement_method` registers it; requests, command line and experiment files take it from there. Other
packages bring theirs as plug-ins of the group gradbed.placements (docs/plugins.md).
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeVar

from gradbed.common.errors import UserError
from gradbed.common.plugins import load_plugin, plugin_failure, plugin_failures, plugins

if TYPE_CHECKING:
    from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver

# ---- Registry ----


@dataclass(frozen=True)
class PlacementMethod:
    """A way to choose the switches that sum."""

    choose: Callable[[RateSolver, int, int], Iterable[str]]
    """(solver, M, seed) to names of switches, without the server's ToR."""
    is_limited: bool
    """Whether it chooses at most M switches; the others take as many as they need."""


Choose = TypeVar("Choose", bound="Callable[[RateSolver, int, int], Iterable[str]]")

METHODS: dict[str, PlacementMethod] = {}
"""The methods of gradbed itself by name."""

NONE = "none"
"""The method with which no switch sums, not even the server's ToR."""


def placement_method(name: str, *, limited: bool = True) -> Callable[[Choose], Choose]:
    """Register a method under a name. limited: it chooses at most M switches."""

    def register(choose: Choose) -> Choose:
        METHODS[name] = PlacementMethod(choose, limited)
        return choose

    return register


def find_method(name: str) -> PlacementMethod:
    """Return the method of that name, gradbed's own or a plug-in's.

    Raises:
        UserError: There is none, or the plug-in cannot be loaded.
    """
    if name in METHODS:
        return METHODS[name]
    if name in plugins("placements"):
        load_plugin("placements", name)
        return PlacementMethod(partial(_choose_by_plugin, name), is_limited=True)
    raise UserError(
        f"unknown placement method {name!r}: choose one of {', '.join([*METHODS, *plugins('placements')])}"
    )


def _choose_by_plugin(name: str, solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    plugin = load_plugin("placements", name)
    with plugin_failures("placements", name):
        chosen: tuple[str, ...] = tuple(plugin(solver, maximum, seed))
    try:
        solver.problem.check_programmable(chosen)
    except UserError as error:
        raise plugin_failure("placements", name, str(error)) from None
    if len(chosen) > maximum:
        raise plugin_failure("placements", name, f"it chose {len(chosen)} switches, of at most {maximum}")
    return chosen


# ---- Greedy ----


@placement_method("greedy")
def _greedy(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Choose for what packets reach, global sums included (ours, docs/placement.md, "Choosing switches")."""
    from gradbed.controller.systems.aggregation.placement.greedy import packet_greedy

    return packet_greedy(solver.problem, maximum)


@placement_method("greedy-gradients")
def _greedy_gradients(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Choose as steps s11 to s16 of the source do (claim 2), by the optimum of its program alone."""
    from gradbed.controller.systems.aggregation.placement.greedy import greedy

    return greedy(solver, maximum)


# ---- The optimum of the source's program ----


MAX_PLACEMENTS = 200_000
"""Sets of switches that `exhaustive` tries at most."""


@placement_method("exhaustive")
def exhaustive(solver: RateSolver, maximum: int, seed: int = 0) -> tuple[str, ...]:
    """Return the `maximum` switches with the highest gamma; of equally good sets the first by switch numbers.

    More switches never lower gamma, so smaller sets need not be tried.

    Raises:
        UserError: There are more than MAX_PLACEMENTS sets.
    """
    from gradbed.controller.systems.aggregation.placement.rate_solver import TOLERANCE

    candidates = solver.problem.candidates
    size = min(maximum, len(candidates))
    count = math.comb(len(candidates), size)
    if count > MAX_PLACEMENTS:
        raise UserError(
            f"{count} placements of {size} among {len(candidates)} switches are too many to try "
            f"(at most {MAX_PLACEMENTS}); use the method greedy or milp"
        )
    limit = solver.model.access_bound
    best: tuple[str, ...] = ()
    best_gamma = -math.inf
    for chosen in combinations(candidates, size):
        gamma = solver.gamma(chosen)
        if gamma > best_gamma + TOLERANCE:
            best, best_gamma = chosen, gamma
            if gamma >= limit - TOLERANCE:
                break
    return best


TIME_LIMIT_S = 600.0
"""Time that the mixed-integer solver may take."""


@placement_method("milp")
def milp(solver: RateSolver, maximum: int, seed: int = 0, time_limit_s: float = TIME_LIMIT_S) -> tuple[str, ...]:
    """Return at most `maximum` switches with the highest gamma, in order of number, by a mixed-integer program.

    It is problem P2 of the source (claim 3) over all switches, with a binary variable z(s) for each of them:
    y(g, s) <= u(g) z(s) for every group g of workers, and the z add up to at most M. u(g) is the most that a worker
    of the group can send anywhere. The z are ours: the source solves P2 for one set of switches after the other
    (s13). HiGHS solves it to a relative gap of 0.

    Raises:
        UserError: The solver does not prove an optimum within time_limit_s.
    """
    import numpy as np  # here, since those who only need names of methods do without it
    import scipy

    problem, model = solver.problem, solver.model
    candidates = problem.candidates
    program = model.program(candidates)
    columns, switches, groups = program.matrix.shape[1], len(candidates), len(problem.groups)
    most = np.minimum([group.access_rate_bps / model.scale_bps for group in problem.groups], model.access_bound)
    y = np.array([model.y(place, group) for place in range(switches) for group in range(groups)], dtype=np.int64)
    rows = np.arange(len(y))
    opened = scipy.sparse.csr_array(  # y(g, s) - u(g) z(s) <= 0
        (
            np.concatenate([np.ones(len(y)), -np.tile(most, switches)]),
            (np.concatenate([rows, rows]), np.concatenate([y, columns + rows // groups])),
        ),
        shape=(len(y), columns + switches),
    )
    counted = scipy.sparse.csr_array(  # sum of z(s) <= M
        (np.ones(switches), columns + np.arange(switches), [0, switches]), shape=(1, columns + switches)
    )
    rates = scipy.sparse.hstack([program.matrix, scipy.sparse.csr_array((program.matrix.shape[0], switches))])
    result = scipy.optimize.milp(
        -np.append(program.profit, np.zeros(switches)),
        integrality=np.append(np.zeros(columns), np.ones(switches)),
        bounds=scipy.optimize.Bounds(0, np.append(np.full(columns, np.inf), np.ones(switches))),
        constraints=[
            scipy.optimize.LinearConstraint(rates, -np.inf, program.upper),
            scipy.optimize.LinearConstraint(opened, -np.inf, 0),
            scipy.optimize.LinearConstraint(counted, -np.inf, maximum),
        ],
        options={"time_limit": time_limit_s, "mip_rel_gap": 0},
    )
    if result.status != 0:
        raise UserError(f"no proven optimum for {switches} switches within {time_limit_s:g} s; use the method greedy")
    return tuple(switch for switch, z in zip(candidates, result.x[columns:], strict=True) if z > 0.5)


# ---- Baselines ----


@placement_method(NONE, limited=False)
def _none(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    return ()


@placement_method("server-tor", limited=False)
def _server_tor(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Let the server's ToR sum alone (ATP; Lao et al., NSDI 2021)."""
    return ()


@placement_method("every-tor", limited=False)
def _every_tor(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Return the ToR of every worker."""
    tors = {group.tor for group in solver.problem.groups}
    return tuple(switch for switch in solver.problem.candidates if switch in tors)


@placement_method("random")
def _random(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Return `maximum` switches drawn with a generator of this seed; a larger `maximum` only adds to the end."""
    order = list(solver.problem.candidates)
    random.Random(seed).shuffle(order)
    return tuple(order[:maximum])


@placement_method("highest-degree")
def _highest_degree(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    from gradbed.controller.systems.aggregation.placement.problem import highest_degree

    return highest_degree(solver.problem, maximum)


@placement_method("grid", limited=False)
def _grid(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Return every switch at which routes from workers to the server meet, however many.

    Routes aggregate wherever they can, as those of GRID do (Fang, Zhao, Xu et al., "GRID: Gradient Routing with
    In-network Aggregation for Distributed Training", IEEE/ACM Transactions on Networking 2023), without its limit of
    one switch for a gradient.
    """
    problem = solver.problem
    inputs: defaultdict[str, set[str]] = defaultdict(set)
    for group in problem.groups:
        inputs[group.tor].update(group.workers)
        path = problem.routes.path(group.tor, problem.server_tor)
        for before, switch in pairwise(path):
            inputs[switch].add(before)
    return tuple(switch for switch in problem.candidates if len(inputs[switch]) > 1)
