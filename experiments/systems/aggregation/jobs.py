"""A job of an aggregation point before it runs, and the description that its agents get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.experiments.configuration.sections import describe
from gradbed.experiments.setup import PointTask, Underlay
from gradbed.experiments.systems.aggregation.configuration import (
    AggregationConfiguration,
    ScriptWorkload,
    TrainingWorkload,
)
from gradbed.experiments.systems.aggregation.programmable import Hosts
from gradbed.hosts.agents.description import AgentAddress, worker_addresses
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import ExternalSettings, SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.aggregation.description import Exchange, JobDescription
from gradbed.topo.graph import Topology

EXPONENT = 26
"""With blocks gradients are scaled by 2^26: sums of up to 32 fit an int32, and steps are of 1.5e-8."""


@dataclass(frozen=True)
class JobSetup:
    """digests: what every worker must report after each round; accuracies: of training. A script has neither."""

    workers: tuple[str, ...]
    server: str
    settings: TrainingSettings | SyntheticSettings | ExternalSettings
    digests: Sequence[str] = ()
    accuracies: Sequence[float] = ()

    def agent_hosts(self, exchange: Exchange) -> tuple[tuple[str, str], ...]:
        """(host, agent) for each agent."""
        workers = tuple((host, f"worker {index}") for index, host in enumerate(self.workers))
        return ((self.server, "server"), *workers) if exchange == "server" else workers


def job_setup(configuration: AggregationConfiguration, hosts: Hosts, seed: int) -> JobSetup:
    """With its reference, which a single process makes."""
    workers, server = hosts
    workload = configuration.workload
    if isinstance(workload, ScriptWorkload):
        return JobSetup(workers, server, ExternalSettings())
    if isinstance(workload, TrainingWorkload):
        exponent = None if workload.blocks is None else EXPONENT
        settings = workload.settings(workload.rounds, seed, exponent)
        training = TrainingSettings.model_validate({**settings.model_dump(), "blocks": workload.blocks})
        expected = list(reference(training, len(workers), workload.lanes))
        digests, accuracies = [each.weights_sha256 for each in expected], [each.accuracy for each in expected]
        return JobSetup(workers, server, training, digests, accuracies)
    synthetic = workload.settings(workload.rounds, seed).model_copy(update={"blocks": workload.blocks})
    digests = list(synthetic_reference(synthetic, len(workers), workload.lanes))
    return JobSetup(workers, server, synthetic, digests)


@dataclass(frozen=True)
class Shared:
    """What the phases of a point have in common. underlay: whose switches carry all packets; None: its own do.
    summing: switches that sum, the servers' ToRs among them. uncounted: hosts without an account."""

    task: PointTask[AggregationConfiguration]
    topology: Topology
    underlay: Underlay | None
    summing: tuple[str, ...]
    uncounted: frozenset[str]

    @property
    def configuration(self) -> AggregationConfiguration:
        return self.task.configuration

    @cached_property
    def routes(self) -> Routes:
        """Those that the controller installs."""
        return shortest_routes(self.topology)


def describe_job(job: JobSetup, answer: Mapping[str, Any], exchange: Exchange, shared: Shared) -> JobDescription:
    """Names become addresses; the answer is the service's."""
    workload, topology = shared.configuration.workload, shared.topology
    slots = answer["slots"] if answer["slot_policy"] == "static" else None
    window = workload.window_fragments
    return describe(
        JobDescription,
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
