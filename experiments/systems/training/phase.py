"""The one phase of a training point: all jobs at once, and what their ranks tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from controller.systems.training.service import JobRequest
from experiments.phases import Phase, Progress
from experiments.setup import PointTask
from experiments.systems.training.configuration import TrainingConfiguration, slow_host
from experiments.testbeds.agents import AgentSpec
from hosts.agents.addresses import AgentAddress
from hosts.agents.queue_pairs import QueuePairOptions
from hosts.systems.training.description import Delay, RankDescription, TrainingJob
from hosts.systems.training.source import Source, trace_of
from topo.graph import Topology

AGENT = "hosts.systems.training.agents:rank"


class TrainingPhase(Phase):
    """jobs: the hosts of each job's ranks."""

    def __init__(
        self,
        jobs: Sequence[Sequence[str]],
        source: Source,
        topology: Topology,
        task: PointTask[TrainingConfiguration],
    ) -> None:
        super().__init__("training", [JobRequest(hosts=tuple(hosts)) for hosts in jobs])
        self.jobs = jobs
        self.source = source
        self.topology = topology
        self.task = task
        self.configuration = task.configuration
        self.reports: defaultdict[int, dict[tuple[int, int], Mapping[str, Any]]] = defaultdict(dict)
        """By job (from 0): what ranks told, by rank and iteration."""
        self.trace = trace_of(source)
        self._slow = {
            host: (factor, delay_ms) for host, factor, delay_ms in map(slow_host, task.configuration.ranks.slow)
        }
        self._numbers: list[int] = []

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        specs = []
        for place, (hosts, answer) in enumerate(zip(self.jobs, answers, strict=True)):
            number = answer["job"]
            self._numbers.append(number)
            file = self._write(place, hosts)
            specs += [
                AgentSpec(host, AGENT, f"rank {rank}", RankDescription(file=file, rank=rank), 0, number)
                for rank, host in enumerate(hosts)
            ]
        return specs

    def _write(self, place: int, hosts: Sequence[str]) -> Path:
        """A job's file, which its ranks read."""
        configuration, scale, topology = self.configuration, self.task.scale, self.topology
        transport = configuration.transport
        job = TrainingJob(
            ranks=tuple(AgentAddress.of(topology.host(host)) for host in hosts),
            racks=tuple(topology.attachment(host).number for host in hosts),
            source=self.source,
            iterations=configuration.ranks.iterations,
            first_pair=1 + place * 2 * len(hosts),
            queue_pairs=QueuePairOptions(
                **{**transport.model_dump(), "timeout_us": scale.time_us(transport.timeout_us)}
            ),
            rules=configuration.collectives.rules,
            contents=configuration.collectives.contents,
            delays={
                rank: Delay(
                    slowdown=self._slow[host][0], begins_after_ns=1000 * scale.time_us(1000 * self._slow[host][1])
                )
                for rank, host in enumerate(hosts)
                if host in self._slow
            },
            timeline=tuple(range(min(len(hosts), configuration.ranks.timeline))),
        )
        file = self.task.folder / f"job_{place + 1}.json"
        file.write_text(job.model_dump_json())
        return file

    def take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "iteration":
            self.reports[self._numbers.index(event["job"])][event["rank"], event["iteration"]] = event

    def number(self, job: int) -> int:
        """The controller's, of a job (from 0)."""
        return self._numbers[job]

    def slowdown(self, job: int, rank: int) -> float:
        """So many times as long as in the trace computations take."""
        return self._slow.get(self.jobs[job][rank], (1.0, 0.0))[0]

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
