"""Placements by name: what a request, a study or the command line asks for, and the cache of what was solved.

Placements that solve the linear program are `StoredPlanner`s: what was solved once is kept in the cache, so that most
networks neither load the solver nor wait for it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.plugins import plugins
from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.methods import METHODS, find_method
from gradbed.controller.systems.aggregation.placement.planner import (
    AggregationChoice,
    AggregationPlanner,
    ExplicitPlacement,
    NoPlacement,
    OwnTorPlacement,
    Rates,
    SharedPathPlacement,
)
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem


OWN_PLANNERS = ("shared-path", "own-tor", "none", "explicit")
"""Placements that solve no linear program, so that they need no rates of links."""
NAMED = ("explicit", "lp")
"""Placements of the switches that the request names: in equal shares, or in those of the linear program."""


def placement_names() -> list[str]:
    """Return the names of all placements, those of plug-ins last."""
    return list(dict.fromkeys([*OWN_PLANNERS, "lp", *METHODS, *plugins("placements")]))


def is_limited(placement: str | None) -> bool:
    """Return whether a placement takes a limit on the number of programmable switches."""
    if placement in METHODS:
        return METHODS[placement].is_limited
    return placement not in (None, *OWN_PLANNERS, "lp")


def _known(placement: str) -> str:
    names = placement_names()
    if placement not in names:
        raise ValueError(f"must be one of {', '.join(map(repr, names))}, got {placement!r}")
    return placement


PlacementName = Annotated[str, AfterValidator(_known)]
"""A name of `placement_names`."""


class PlannerOptions(BaseModel):
    """A placement by name, and what it needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    placement: PlacementName | None = None
    switches: tuple[str, ...] | None = None
    """Names of switches, for the placements explicit and lp."""
    programmable: int | None = None
    """M: the most switches besides the server's ToR, for placements that choose."""
    switch_capacity_mbps: float | None = None
    """C: what a switch can sum; null: all that arrives."""
    demand_mbps: float | None = None
    """The rate that every worker needs."""
    seed: int = Field(default=1, ge=0)
    """The seed of the placement random."""

    @property
    def solves(self) -> bool:
        """The placement solves the linear program, for which links need rates."""
        return self.placement not in (None, *OWN_PLANNERS)

    def planner(self) -> AggregationPlanner | None:
        """Return the planner, or None if no placement is named.

        Raises:
            UserError: The options contradict each other, or a plug-in cannot be loaded.
        """
        name = self.placement
        limited = is_limited(name)
        if limited and self.programmable is None:
            raise UserError(f"placement {name} needs to know how many switches may be programmable")
        if not limited and self.programmable is not None:
            choices = ", ".join(filter(is_limited, placement_names()))
            raise UserError(f"a number of programmable switches goes with a placement that chooses them: {choices}")
        shown = "the default placement" if name is None else f"placement {name}"
        if self.switches and name not in NAMED:
            raise UserError(f"switches are named, but {shown} chooses its own")
        if name in NAMED and (self.switches is None or (name == "explicit" and not self.switches)):
            raise UserError(f"placement {name} needs the names of switches (--switches; switches.named in a study)")
        if (self.switch_capacity_mbps, self.demand_mbps) != (None, None) and not self.solves:
            raise UserError(f"{shown} does not use a capacity of switches or a demand")
        if name is None:
            return None
        if name == "none":
            return NoPlacement()
        if name == "shared-path":
            return SharedPathPlacement()
        if name == "own-tor":
            return OwnTorPlacement()
        if name == "explicit":
            return ExplicitPlacement(self.switches or ())
        capacity, demand = self.switch_capacity_mbps, self.demand_mbps
        options = {
            "maximum": self.programmable or 0,
            "method": "greedy" if name == "lp" else name,
            "switch_capacity_bps": None if capacity is None else capacity * 1e6,
            "seed": self.seed,
            "demand_bps": None if demand is None else demand * 1e6,
            "switches": self.switches,
        }
        if name == "lp" or name in METHODS:
            return StoredPlanner(options)
        find_method(name)
        return PluginPlanner(options)


@dataclass(frozen=True)
class PluginPlanner:
    """A placement of another package. Only rates and labels are kept: what it chooses depends on its own code."""

    options: Mapping[str, Any]
    """Arguments of `LpPlanner`."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
        from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver

        options = self.options
        problem = AggregationProblem(topology, routes, tuple(workers), server, options["switch_capacity_bps"])
        choose = find_method(options["method"]).choose
        chosen = tuple(choose(RateSolver(problem), options["maximum"], options["seed"]))
        return StoredPlanner({**options, "switches": chosen}).choose(topology, routes, workers, server)


# ---- What was solved before, kept in the cache: a network waits a second while the solver is loaded and solves ----


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class StoredPlanner:
    """An `LpPlanner` that solves the same only once."""

    options: Mapping[str, Any]
    """Arguments of `LpPlanner`."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        def solve() -> AggregationChoice:
            from gradbed.controller.systems.aggregation.placement.lp_planner import LpPlanner

            return LpPlanner(**self.options).choose(topology, routes, workers, server)

        return _stored(AggregationChoice, topology, routes, ["choose", workers, server, self.options], solve)


def stored_rates(problem: AggregationProblem, programmable: Sequence[str], server_tor: bool = True) -> Rates:
    """Return what `solve_rates` returns, of now or of before."""

    def solve() -> Rates:
        from gradbed.controller.systems.aggregation.placement.rate_solver import solve_rates

        return solve_rates(problem, programmable, server_tor)

    question = ["rates", problem.workers, problem.server, problem.switch_capacity_bps, programmable, server_tor]
    return _stored(Rates, problem.topology, problem.routes, question, solve)


def _stored(
    kind: type[Answer], topology: Topology, routes: Routes, question: Sequence[Any], solve: Callable[[], Answer]
) -> Answer:
    """Return the answer of `solve`, of now or of before. A UserError of it is not kept."""
    asked = json.dumps([question, routes.next_hops, routes.distances], default=dict)
    place = cache_dir() / "placements" / f"{digest_of([_solver(), topology.model_dump_json(), asked])}.json"
    adapter = TypeAdapter(kind)
    for _ in range(2):
        stored(lambda new: new.write_bytes(adapter.dump_json(solve())), place)
        try:
            return adapter.validate_json(place.read_bytes())
        except ValidationError:
            place.unlink(missing_ok=True)  # a power cut may leave half a file
    raise UserError(f"the cache {place.parent} does not keep what is written: set GRADBED_CACHE")


@functools.cache
def _solver() -> str:
    """Return the digest of what else an answer depends on: the code of planners, and of the solver."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return digest_of([version("numpy"), version("scipy")], files)
