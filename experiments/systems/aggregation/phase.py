"""A phase of an aggregation trial: its jobs and agents, events of its workers, and whether sums are right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.controller.systems.aggregation.job_plan import check_hosts
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.service import AggregationJobRequest
from gradbed.experiments.configuration.faults import stopped_agents
from gradbed.experiments.configuration.sections import agent_config
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import FabricProgram, TrialTask
from gradbed.experiments.systems.aggregation.configuration import (
    AggregationConfiguration,
    AggregationScriptWorkload,
    AggregationTrainingWorkload,
)
from gradbed.experiments.torch_scripts import SILENCE_US, ScriptWorkers, check_script
from gradbed.hosts.agents.config import AgentAddress, worker_addresses
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import ExternalSettings, SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.aggregation.config import AggregationJob, AggregationWorker, Exchange
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
    """Per job, the fields of gradbed.controller.systems.aggregation.service.AggregationJobRequest that ask for its
    part in the switches.
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
                f"placement {options.placement} needs the rates of links, and that between {link.a.node} and "
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
            config=AggregationWorker(job=job, index=worker.index),
            stop_rank=WORKER_RANK,
            job=job.job,
        )
        for worker in job.workers
    ]
    return [*servers, *workers]


def server_spec(job: AggregationJob) -> AgentSpec:
    """Return the agent of the parameter server."""
    return AgentSpec(host=job.server.name, agent=f"{MODULE}:server", name="server", config=job, job=job.job)


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
    fabric_program: FabricProgram | None
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


def job_config(
    job: AggregationJobSetup, answer: Mapping[str, Any], exchange: Exchange, shared: SharedSetup
) -> AggregationJob:
    """Return the configuration of a job's agents: names become addresses. The answer is the service's."""
    workload, topology = shared.configuration.workload, shared.topology
    slots = answer["slots"] if answer["slot_policy"] == "static" else None
    window = workload.window_fragments
    return agent_config(
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


# ---- The phase ----


IN_NETWORK = "in-network"
PARAMETER_SERVER = "parameter server"


@dataclass
class AggregationRoundReport:
    """Report of one round, over all workers of a job."""

    seconds: float = 0.0
    """Emulated time of the slowest worker, from its own start."""
    begin_us: float = math.inf
    """First worker's start on the agents' clock."""
    end_us: float = -math.inf
    """Last worker's end on the agents' clock."""
    losses: list[float] = field(default_factory=list)
    """Training loss of each worker."""
    clipped: int = 0
    """Values that did not fit and were clipped, over all workers."""
    reported: set[str] = field(default_factory=set)
    """Names of the workers that have reported; some report twice if they were restarted."""

    @property
    def whole_seconds(self) -> float:
        """Emulated time from the first worker's start to the last one's end."""
        return max(0.0, self.end_us - self.begin_us) / 1e6


Bounds = tuple[float | None, float | None]
"""Upper bounds of a job in bit/s: of the linear program, and for packets with its labels."""


class AggregationPhase(Phase):
    """Workers of one or several jobs sum as many gradients as there are rounds."""

    def __init__(
        self,
        name: str,
        exchange: Exchange,
        jobs: Sequence[AggregationJobSetup],
        requests: Sequence[AggregationJobRequest],
        shared: SharedSetup,
    ) -> None:
        super().__init__(name, requests)
        self.exchange: Exchange = exchange
        self.jobs = jobs
        self.shared = shared
        self.task = shared.task
        self.scale = shared.task.scale
        self.configs: list[AggregationJob] = []
        self.rounds = [[AggregationRoundReport() for _ in job.digests] for job in jobs]
        self.mismatches: list[str] = []
        self.bounds_bps: dict[int, Bounds] = {}
        """Bounds of each job, once they were asked for (metrics.py)."""
        self._killed: list[set[str]] = [set() for _ in jobs]
        """Per job, agents that were killed and are not restarted."""

    @property
    def by_links(self) -> bool:
        """Return whether no switch can identify gradients, so that the links' counts stand for those of switches."""
        return self.exchange != "server" or self.shared.fabric_program is not None

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.configs = [
            job_config(job, answer, self.exchange, self.shared)
            for job, answer in zip(self.jobs, answers, strict=True)
        ]
        return [spec for config in self.configs for spec in agent_specs(config)]

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        if event["event"] not in ("round", "killed"):
            return None
        place = next(i for i, job in enumerate(self.configs) if job.job == event["job"])
        if event["event"] == "round":
            self._take_round(place, event)
        elif event["name"] in stopped_agents(self.task.configuration.faults):
            self._killed[place].add(event["name"])
        self._check_killed(place)
        return None

    def _check_killed(self, place: int) -> None:
        """Raise UserError if all workers that lack sums were killed and are not restarted.

        Other workers may still be waiting for them.
        """
        rounds = [report.reported for report in self.rounds[place]]
        names = [f"worker {index}" for index in range(len(self.jobs[place].workers))]
        lacking = {name for name in names if any(name not in reported for reported in rounds)}
        if lacking and lacking <= self._killed[place]:
            name = min(lacking)
            had = sum(name in reported for reported in rounds)
            raise UserError(f"{self._where(place)}{name} was killed when it had {had} of {len(rounds)} sums")

    def _take_round(self, place: int, event: Mapping[str, Any]) -> None:
        number = event["round"]
        report = self._report(place, number)
        report.seconds = max(report.seconds, event["seconds"])
        report.begin_us = min(report.begin_us, event["complete_us"] - 1e6 * event["seconds"])
        report.end_us = max(report.end_us, event["complete_us"])
        report.reported.add(event["name"])
        report.clipped += event.get("clipped", 0)
        if "loss" in event:
            report.losses.append(event["loss"])
        if not self.jobs[place].digests:
            return
        expected = self.jobs[place].digests[number]
        found = event.get("weights_sha256") or event["sums_sha256"]
        if found != expected:
            self.mismatches.append(
                f"{self._where(place)}round {number + 1}, {event['name']}: {found[:12]} instead of the reference's "
                f"{expected[:12]}"
            )

    def _report(self, place: int, number: int) -> AggregationRoundReport:
        return self.rounds[place][number]

    def _where(self, place: int) -> str:
        return f"{self.name}, " + (f"job {place + 1}, " if len(self.jobs) > 1 else "")

    def _done(self, place: int) -> int:
        """Return the number of rounds that all workers of a job have completed."""
        return sum(len(report.reported) == len(self.jobs[place].workers) for report in self.rounds[place])

    @property
    def complete(self) -> bool:
        return all(self._done(place) == len(rounds) for place, rounds in enumerate(self.rounds))

    def progress(self) -> list[Progress]:
        bars = []
        for place, job in enumerate(self.jobs):
            done = self._done(place)
            note = f"{1e3 * self.scale.nominal_time(self.rounds[place][done - 1].seconds):6.1f} ms" if done else ""
            if done and job.accuracies:
                note += f", accuracy {100 * job.accuracies[done - 1]:5.2f} %"
            label = f"{self.name}, job {place + 1}" if len(self.jobs) > 1 else self.name
            bars.append(Progress(label, done, len(job.digests), note))
        return bars


# ---- PyTorch scripts ----


class AggregationScriptPhase(ScriptWorkers, AggregationPhase):
    """Phase of one job of a PyTorch script; without a reference, no sums are compared."""

    @property
    def values(self) -> int:
        """Number of values of a gradient; 0: no model was registered."""
        return self._ranks.values

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        job = job_config(self.jobs[0], answers[0], self.exchange, self.shared)
        job = job.model_copy(update={"give_up_us": SILENCE_US})
        self.configs = [job]
        return self._ranks.specs(job, f"{MODULE}:open_exchange", WORKER_RANK)

    def take(self, event: Mapping[str, Any]) -> list[AgentSpec] | None:
        if event["event"] == "round":
            self._take_round(0, event)
        if not self._ranks.take(event):
            return None
        (job,) = self.configs
        self.configs = [job.model_copy(update={"workload": ExternalSettings(values=self.values)})]
        return [server_spec(self.configs[0])] if self.exchange == "server" else []

    def _report(self, place: int, number: int) -> AggregationRoundReport:
        while len(self.rounds[place]) <= number:
            self.rounds[place].append(AggregationRoundReport())
        return self.rounds[place][number]

    @property
    def complete(self) -> bool:
        return self._ranks.complete


def check_script_jobs(configuration: AggregationConfiguration) -> None:
    """Raise UserError if the script cannot run."""
    workload = configuration.workload
    assert isinstance(workload, AggregationScriptWorkload)
    check_script(configuration, workload)
    if workload.jobs > 1:
        raise UserError("--jobs: a script is one job")
    if workload.baselines:
        raise UserError("--baselines: a script runs once; compare by running it again with another --placement")
