"""The single phase of a training trial: all jobs at once, and the events of their ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.controller.systems.training.service import TrainingJobRequest
from gradbed.experiments.phases import OtherRequest, Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.training.configuration import TrainingConfiguration, slow_host
from gradbed.experiments.systems.training.placement import SwitchedGroup
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.queue_pairs import QueuePairOptions, StreamOptions
from gradbed.hosts.systems.training.config import (
    Delay,
    JobStream,
    RankConfig,
    ServerConfig,
    TrainingJob,
)
from gradbed.hosts.systems.training.source import Source, trace_of
from gradbed.topo.graph import Topology

LEAST_REAL_TIMEOUT_US = 50_000
"""Smallest timeout on the real clock, as a process may wait for a processor for so long, and its NIC with it."""

AGENT, SERVER = "gradbed.hosts.systems.training.agents:rank", "gradbed.hosts.systems.training.agents:server"


class TrainingPhase(Phase):
    """Ranks of all jobs execute their traces."""

    def __init__(
        self,
        jobs: Sequence[Sequence[str]],
        source: Source,
        topology: Topology,
        task: TrialTask[TrainingConfiguration],
        switched: Sequence[SwitchedGroup] = (),
        service: str | None = None,
    ) -> None:
        """Prepare the phase.

        Args:
            jobs: hosts of each job's ranks.
            switched: groups whose collectives switches carry out.
            service: name of the service that these groups' requests go to.
        """
        own = [TrainingJobRequest(hosts=tuple(hosts)) for hosts in jobs]
        super().__init__("training", [*own, *(OtherRequest(service, each.streams.request) for each in switched)])
        self.switched = switched
        self.jobs = jobs
        self.source = source
        self.topology = topology
        self.task = task
        self.configuration = task.configuration
        self.reports: defaultdict[int, dict[tuple[int, int], Mapping[str, Any]]] = defaultdict(dict)
        """Per job (from 0), the reports of its ranks, by rank and iteration."""
        self.trace = trace_of(source)
        self._slow = {
            host: (factor, delay_ms) for host, factor, delay_ms in map(slow_host, task.configuration.ranks.slow)
        }
        self._numbers: list[int] = []

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        specs = []
        of_jobs, of_groups = answers[: len(self.jobs)], answers[len(self.jobs) :]
        ends = [
            self._patient(each.streams.streams(answer)) for each, answer in zip(self.switched, of_groups, strict=True)
        ]
        for place, (hosts, answer) in enumerate(zip(self.jobs, of_jobs, strict=True)):
            number = answer["job"]
            self._numbers.append(number)
            file = self._write(place, hosts, ends)
            specs += [
                AgentSpec(host, AGENT, f"rank {rank}", RankConfig(file=file, rank=rank), 0, number)
                for rank, host in enumerate(hosts)
            ]
        return [*specs, *self._servers(ends)]

    def _servers(self, ends: Sequence[Mapping[str, StreamOptions]]) -> list[AgentSpec]:
        """Return the agents of the servers that are no ranks, one on each such host."""
        streams: defaultdict[str, dict[int, StreamOptions]] = defaultdict(dict)
        for number, (each, of_group) in enumerate(zip(self.switched, ends, strict=True), start=1):
            if each.streams.other not in each.streams.members:
                streams[each.streams.other][number] = of_group[each.streams.other]
        return [
            AgentSpec(
                host,
                SERVER,
                f"server {place}",
                ServerConfig(address=AgentAddress.of(self.topology.host(host)), streams=own),
                1,
                self._numbers[0],
            )
            for place, (host, own) in enumerate(streams.items())
        ]

    def _streams(self, job: int, ends: Sequence[Mapping[str, StreamOptions]]) -> tuple[JobStream, ...]:
        return tuple(
            JobStream(
                operation=each.operation,
                group=each.group,
                number=number,
                ends={rank: of_group[self.jobs[job][rank]] for rank in each.group},
            )
            for number, (each, of_group) in enumerate(zip(self.switched, ends, strict=True), start=1)
            if each.job == job
        )

    def _write(self, place: int, hosts: Sequence[str], ends: Sequence[Mapping[str, StreamOptions]]) -> Path:
        """Write a job's file, which its ranks read, and return its path."""
        configuration, scale, topology = self.configuration, self.task.scale, self.topology
        transport = configuration.transport
        job = TrainingJob(
            ranks=tuple(AgentAddress.of(topology.host(host)) for host in hosts),
            racks=tuple(topology.attachment(host).number for host in hosts),
            source=self.source,
            iterations=configuration.ranks.iterations,
            first_pair=1 + place * 2 * len(hosts),
            queue_pairs=QueuePairOptions(**{**transport.model_dump(), "timeout_us": self._timeout_us}),
            rules=configuration.collectives.rules,
            streams=self._streams(place, ends),
            streams_from_bytes=configuration.collectives.in_network_from_bytes,
            contents=configuration.collectives.contents,
            delays={
                rank: Delay(
                    slowdown=self.slowdown(place, rank),
                    begins_after_ns=1000 * scale.time_us(1000 * self._slow.get(host, (1.0, 0.0))[1]),
                )
                for rank, host in enumerate(hosts)
                if host in self._slow or scale.factor != 1
            },
            timeline=tuple(range(min(len(hosts), configuration.ranks.timeline))),
        )
        file = self.task.folder / f"job_{place + 1}.json"
        file.write_text(job.model_dump_json())
        return file

    @property
    def _timeout_us(self) -> int:
        """Timeout of queue pairs on the network's clock."""
        return max(self._least_timeout_us, self.task.scale.time_us(self.configuration.transport.timeout_us))

    @property
    def _least_timeout_us(self) -> int:
        return LEAST_REAL_TIMEOUT_US if self.configuration.clock == "real" else 1

    def _patient(self, ends: Mapping[str, StreamOptions]) -> dict[str, StreamOptions]:
        """Return the streams with timeouts of their network's clock."""
        return {
            host: end.model_copy(update={"timeout_us": max(self._least_timeout_us, end.timeout_us)})
            for host, end in ends.items()
        }

    def take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "iteration":
            self.reports[self._numbers.index(event["job"])][event["rank"], event["iteration"]] = event

    def number(self, job: int) -> int:
        """Return the controller's number of a job (from 0)."""
        return self._numbers[job]

    def slowdown(self, job: int, rank: int) -> float:
        """Return the factor on a rank's compute times in the trace, on the network's clock."""
        return self._slow.get(self.jobs[job][rank], (1.0, 0.0))[0] / self.task.scale.factor

    @property
    def _wanted(self) -> int:
        return sum(map(len, self.jobs)) * self.configuration.ranks.iterations

    @property
    def _done(self) -> int:
        return sum(map(len, self.reports.values()))

    @property
    def complete(self) -> bool:
        return self._done == self._wanted

    def progress(self) -> list[Progress]:
        return [Progress("ranks", self._done, self._wanted)]
