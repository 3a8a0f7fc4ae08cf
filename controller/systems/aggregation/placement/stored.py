"""What was solved before, kept in the cache: a network waits a second while the solver is loaded and solves."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice, Rates
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class StoredPlanner:
    """An AggregationPlanner that solves the same only once. options: of LpPlanner."""

    options: Mapping[str, Any]

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        def solve() -> AggregationChoice:
            from gradbed.controller.systems.aggregation.placement.place import LpPlanner

            return LpPlanner(**self.options).choose(topology, routes, workers, server)

        return _stored(AggregationChoice, topology, routes, ["choose", workers, server, self.options], solve)


def stored_rates(problem: AggregationProblem, programmable: Sequence[str], server_tor: bool = True) -> Rates:
    """As solve_rates."""

    def solve() -> Rates:
        from gradbed.controller.systems.aggregation.placement.rates.rates import solve_rates

        return solve_rates(problem, programmable, server_tor)

    question = ["rates", problem.workers, problem.server, problem.switch_capacity_bps, programmable, server_tor]
    return _stored(Rates, problem.topology, problem.routes, question, solve)


def _stored(
    kind: type[Answer], topology: Topology, routes: Routes, question: Sequence[Any], solve: Callable[[], Answer]
) -> Answer:
    """Return the answer of `solve`, from the cache if it is there. A UserError is not cached."""
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
    """What else an answer depends on: the code of planners, and of the solver."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return digest_of([version("numpy"), version("scipy")], files)
