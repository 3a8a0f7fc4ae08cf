"""A phase of an aggregation trial: its jobs, the events of its workers, and whether their sums are right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.messages import JobRequest
from gradbed.experiments.configuration.faults import stopped_agents
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration, AggregationScriptWorkload
from gradbed.experiments.systems.aggregation.jobs import (
    MODULE,
    WORKER_RANK,
    AggregationJobSetup,
    SharedSetup,
    agent_specs,
    describe_job,
    server_spec,
)
from gradbed.experiments.torch_scripts import SILENCE_US, ScriptWorkers, check_script
from gradbed.hosts.learning.settings import ExternalSettings
from gradbed.hosts.systems.aggregation.description import AggregationJob, Exchange

IN_NETWORK = "in-network"
PARAMETER_SERVER = "parameter server"


@dataclass
class AggregationRoundReport:
    """One round, over all workers of a job."""

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
        requests: Sequence[JobRequest],
        shared: SharedSetup,
    ) -> None:
        super().__init__(name, requests)
        self.exchange: Exchange = exchange
        self.jobs = jobs
        self.shared = shared
        self.task = shared.task
        self.scale = shared.task.scale
        self.descriptions: list[AggregationJob] = []
        self.rounds = [[AggregationRoundReport() for _ in job.digests] for job in jobs]
        self.mismatches: list[str] = []
        self.bounds_bps: dict[int, Bounds] = {}
        """Bounds of each job, once they were asked for (metrics.py)."""
        self._killed: list[set[str]] = [set() for _ in jobs]
        """Per job, agents that were killed and are not restarted."""

    @property
    def by_links(self) -> bool:
        """Whether no switch can identify gradients, so that the links' counts stand for the switches'."""
        return self.exchange != "server" or self.shared.underlay is not None

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.descriptions = [
            describe_job(job, answer, self.exchange, self.shared)
            for job, answer in zip(self.jobs, answers, strict=True)
        ]
        return [spec for description in self.descriptions for spec in agent_specs(description)]

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        if event["event"] not in ("round", "killed"):
            return None
        place = next(i for i, job in enumerate(self.descriptions) if job.job == event["job"])
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
    """One job of a PyTorch script; without a reference, no sums are compared."""

    @property
    def values(self) -> int:
        """Number of values of a gradient; 0: no model was registered."""
        return self._ranks.values

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        job = describe_job(self.jobs[0], answers[0], self.exchange, self.shared)
        job = job.model_copy(update={"give_up_us": SILENCE_US})
        self.descriptions = [job]
        return self._ranks.specs(job, f"{MODULE}:open_exchange", WORKER_RANK)

    def take(self, event: Mapping[str, Any]) -> list[AgentSpec] | None:
        if event["event"] == "round":
            self._take_round(0, event)
        if not self._ranks.take(event):
            return None
        (job,) = self.descriptions
        self.descriptions = [job.model_copy(update={"workload": ExternalSettings(values=self.values)})]
        return [server_spec(self.descriptions[0])] if self.exchange == "server" else []

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
