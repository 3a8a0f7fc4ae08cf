"""Aggregation jobs before they run: which switches sum, what the controller is asked, and the agents with their
configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.controller.systems.aggregation.job_plan import check_hosts
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice
from gradbed.controller.systems.aggregation.placement.planners import PlannerOptions
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.experiments.configuration.sections import describe
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask, Underlay
from gradbed.experiments.systems.aggregation.configuration import (
    AggregationConfiguration,
    AggregationScriptWorkload,
    AggregationTrainingWorkload,
)
from gradbed.hosts.agents.description import AgentAddress, worker_addresses
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import ExternalSettings, SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.aggregation.description import AggregationJob, AggregationWorker, Exchange
from gradbed.topo.graph import Topology

# ---- Which switches sum ----


Hosts = tuple[tuple[str, ...], str]
"""Workers and server of a job."""


@dataclass(frozen=True)
class ProgrammableChoice:
    """The switches that sum, and what the controller is asked for each job."""

    switches: tuple[str, ...]
    """Switches that sum for some job, the servers' ToRs among them."""
    requests: tuple[Mapping[str, Any], ...]
    """Per job, the fields of gradbed.controller.systems.aggregation.messages.JobRequest that ask for its part in
    the switches.
    """


def choose_programmable(topology: Topology, jobs: Sequence[Hosts], options: PlannerOptions) -> ProgrammableChoice:
    """Let the planner choose the switches that sum for every job.

    A limit on programmable switches holds for the whole network: the jobs' choices are taken in turns, best first,
    until it is reached, and then every job makes the best of all of them.

    Raises:
        UserError: the planner refuses a job.
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
    """Raise UserError for what `choose_programmable` would refuse.

    Routes take long in a large network and are found only where switches are named; the problem is solved only where
    a demand must be met.
    """
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


# ---- Agents ----


MODULE = "gradbed.hosts.systems.aggregation.agents"
WORKER_RANK = 1
"""Stop rank of workers: the server stops first, so that workers count its last ACKs."""


def agent_specs(job: AggregationJob) -> list[AgentSpec]:
    """Return the agents of a job: the server, if it has one, and the workers."""
    servers = [server_spec(job)] if job.exchange == "server" else []
    workers = [
        AgentSpec(
            host=worker.name,
            agent=f"{MODULE}:worker",
            name=f"worker {worker.index}",
            description=AggregationWorker(job=job, index=worker.index),
            stop_rank=WORKER_RANK,
            job=job.job,
        )
        for worker in job.workers
    ]
    return [*servers, *workers]


def server_spec(job: AggregationJob) -> AgentSpec:
    """Return the agent of the parameter server."""
    return AgentSpec(host=job.server.name, agent=f"{MODULE}:server", name="server", description=job, job=job.job)


# ---- Jobs ----


EXPONENT = 26
"""Gradients with blocks are scaled by 2^26: sums of up to 32 workers fit an int32, and steps are of 1.5e-8."""


@dataclass(frozen=True)
class AggregationJobSetup:
    """Hosts of a job, its learning settings, and what its workers must report."""

    workers: tuple[str, ...]
    server: str
    settings: TrainingSettings | SyntheticSettings | ExternalSettings
    digests: Sequence[str] = ()
    """SHA-256 that every worker must report after each round; empty for a script."""
    accuracies: Sequence[float] = ()
    """Test accuracy after each round; of training only."""

    def agent_hosts(self, exchange: Exchange) -> tuple[tuple[str, str], ...]:
        """Return (host, agent name) of each agent."""
        workers = tuple((host, f"worker {index}") for index, host in enumerate(self.workers))
        return ((self.server, "server"), *workers) if exchange == "server" else workers


def job_setup(configuration: AggregationConfiguration, hosts: Hosts, seed: int) -> AggregationJobSetup:
    """Return a job with its reference, which a single process computes."""
    workers, server = hosts
    workload = configuration.workload
    if isinstance(workload, AggregationScriptWorkload):
        return AggregationJobSetup(workers, server, ExternalSettings())
    if isinstance(workload, AggregationTrainingWorkload):
        exponent = None if workload.blocks is None else EXPONENT
        settings = workload.settings(workload.rounds, seed, exponent)
        training = TrainingSettings.model_validate({**settings.model_dump(), "blocks": workload.blocks})
        expected = list(reference(training, len(workers), workload.lanes))
        digests, accuracies = [each.weights_sha256 for each in expected], [each.accuracy for each in expected]
        return AggregationJobSetup(workers, server, training, digests, accuracies)
    synthetic = workload.settings(workload.rounds, seed).model_copy(update={"blocks": workload.blocks})
    digests = list(synthetic_reference(synthetic, len(workers), workload.lanes))
    return AggregationJobSetup(workers, server, synthetic, digests)


@dataclass(frozen=True)
class SharedSetup:
    """Setup that the phases of a trial share."""

    task: TrialTask[AggregationConfiguration]
    topology: Topology
    underlay: Underlay | None
    """Network whose switches carry all packets; None: the trial's own switches do."""
    summing: tuple[str, ...]
    """Switches that sum, the servers' ToRs among them."""
    raw_frames: frozenset[str]

    @property
    def configuration(self) -> AggregationConfiguration:
        return self.task.configuration

    @cached_property
    def routes(self) -> Routes:
        """Routes that the controller installs."""
        return shortest_routes(self.topology)


def describe_job(
    job: AggregationJobSetup, answer: Mapping[str, Any], exchange: Exchange, shared: SharedSetup
) -> AggregationJob:
    """Return the configuration of a job's agents: names become addresses. The answer is the service's."""
    workload, topology = shared.configuration.workload, shared.topology
    slots = answer["slots"] if answer["slot_policy"] == "static" else None
    window = workload.window_fragments
    return describe(
        AggregationJob,
        shared.task.scale,
        workload,
        job=answer["job"],
        exchange=exchange,
        designations=answer["designations"],
        multicast=answer["multicast"],
        span_fragments=slots,
        window_fragments=window if slots is None else min(window, slots),
        workers=worker_addresses(topology, job.workers),
        server=AgentAddress.of(topology.host(job.server)),
        workload=job.settings,
    )
