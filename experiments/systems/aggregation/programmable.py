"""Which switches of a network sum gradients, and what the controller is asked for each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.aggregation.job_plan import check_hosts
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice
from gradbed.controller.systems.aggregation.placement.planners import PlannerOptions
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.topo.graph import Topology

Hosts = tuple[tuple[str, ...], str]
"""A job's workers and its server."""


@dataclass(frozen=True)
class ProgrammableChoice:
    """switches: that sum for some job, the servers' ToRs among them. requests: for each job, the fields of
    gradbed.controller.systems.aggregation.messages.JobRequest that ask for its part in them."""

    switches: tuple[str, ...]
    requests: tuple[Mapping[str, Any], ...]


def choose_programmable(topology: Topology, jobs: Sequence[Hosts], options: PlannerOptions) -> ProgrammableChoice:
    """Let the planner choose for every job. UserError for what it refuses.

    A limit on programmable switches holds for the network: the jobs' choices are taken in turns, best first, until
    it is reached, and then every job makes the best of all of them.
    """
    routes = shortest_routes(topology)
    planner = options.planner()
    tors = tuple(dict.fromkeys(topology.attachment(server).name for _, server in jobs))
    if planner is None:
        raise ValueError("options without a placement leave the choice to the controller")
    choices: list[AggregationChoice] = []
    for workers, server in jobs:
        check_hosts(topology, workers, server)
        choices.append(planner.choose(topology, routes, workers, server))
    in_turns = chain.from_iterable(zip_longest(*(choice.programmable for choice in choices)))
    chosen = [name for name in dict.fromkeys(in_turns) if name is not None]
    if options.programmable is None:
        return ProgrammableChoice(tuple(dict.fromkeys((*chosen, *tors))), tuple(_request(options) for _ in jobs))
    limited = [name for name in chosen if name not in tors][: options.programmable]
    everywhere = (*limited, *tors)
    requests = []
    for _, server in jobs:
        own = topology.attachment(server).name
        named = options.model_copy(
            update={
                "placement": "lp",
                "switches": tuple(name for name in everywhere if name != own),
                "programmable": None,
            }
        )
        requests.append(_request(named))
    return ProgrammableChoice(everywhere, tuple(requests))


def check_choice(topology: Topology, jobs: Sequence[Hosts], options: PlannerOptions) -> None:
    """UserError for what `choose_programmable` would refuse. Finds routes, which takes long in a large network, only
    where switches are named, and solves only where a demand must be met."""
    options.planner()
    for workers, server in jobs:
        check_hosts(topology, workers, server)
    for link in topology.links if options.solves else ():
        if link.model.rate_bps is None:
            raise UserError(
                f"placement {options.placement} reckons with the rates of links, and that between {link.a.node} and "
                f"{link.b.node} has none: give it one, or take the placement shared-path, explicit or none"
            )
    if options.demand_mbps is not None or options.placement == "explicit":
        choose_programmable(topology, jobs, options)
    elif options.switches is not None:
        for workers, server in jobs:
            AggregationProblem.of(topology, workers, server).check_programmable(options.switches)


def _request(options: PlannerOptions) -> dict[str, Any]:
    return options.model_dump(mode="json", exclude_none=True)
