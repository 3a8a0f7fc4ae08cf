"""The single phase of an NDN trial: events of its agents, and whether their results are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.experiments.configuration.faults import AgentFault
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.ndn.configuration import ALL_REDUCE, NdnConfiguration
from gradbed.experiments.systems.ndn.jobs import NdnJobSetup, agent_specs, request_of
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.systems.ndn.asynchronous import replay
from gradbed.topo.graph import Topology


@dataclass
class PeerReport:
    """Events of one agent, version by version."""

    versions: list[Mapping[str, Any]] = field(default_factory=list)
    subscribed: bool = False
    trained: bool = False
    left: bool = False
    lost: tuple[str, ...] = ()
    """Publishers (hosts) that it gave up waiting for."""


class NdnPhase(Phase):
    """Peers subscribe, train, and leave; observers follow them."""

    def __init__(self, job: NdnJobSetup, topology: Topology, task: TrialTask[NdnConfiguration]) -> None:
        configuration = task.configuration
        super().__init__(configuration.workload.exchange, [request_of(job, configuration)])
        self.job = job
        self.answer: Mapping[str, Any] = {}
        self.topology = topology
        self.configuration = configuration
        self.task = task
        self.killed = frozenset(fault.agent for fault in configuration.faults if isinstance(fault, AgentFault))
        self.peers = {f"peer {index}": PeerReport() for index in range(len(job.peers))}
        self.observers = {f"observer {index}": PeerReport() for index in range(len(job.observers))}
        self.reports = {**self.peers, **self.observers}
        self.mismatches: list[str] = []
        self._sums: dict[int, str] = {}

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        (self.answer,) = answers
        return agent_specs(self.job, self.configuration, self.topology, self.task.scale, self.answer["job"])

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        """Let peers train once all have subscribed, and leave once all have trained."""
        name = event["name"]
        report = self.reports.get(name)
        if report is None:
            return None
        if event["event"] == "subscribed":
            report.subscribed = True
            return [] if all(each.subscribed for each in self.peers.values()) else None
        if event["event"] == "trained":
            report.trained = True
            alive = (each for peer, each in self.peers.items() if peer not in self.killed)
            return [] if all(each.trained for each in alive) else None
        if event["event"] == "left":
            report.left = True
        elif event["event"] == "gave-up":
            report.lost = tuple(event["publishers"])
        elif event["event"] in ("version", "round", "observed"):
            version = event.get("version", event.get("round"))
            assert version is not None
            report.versions.append({**event, "version": version})
            self._check(name, version, event)
            if self.name in ALL_REDUCE and version == self.job.settings.rounds - 1:
                report.left = True
        return None

    def _check(self, name: str, version: int, event: Mapping[str, Any]) -> None:
        """Check that sums and weights of synchronous peers equal those of the others and of the reference."""
        for digests, key in ((self.job.weights, "weights_sha256"), (self.job.sums, "sums_sha256")):
            if digests and key in event and event[key] != digests[version]:
                self.mismatches.append(f"{name}, version {version}: {key} is not the reference's")
        if "sum_sha256" in event and self._sums.setdefault(version, event["sum_sha256"]) != event["sum_sha256"]:
            self.mismatches.append(f"{name}, version {version}: its sum is not that of the others")

    @staticmethod
    def index(agent: str) -> int | None:
        """Return the number of a peer from its agent's name; None for other agents."""
        kind, _, number = agent.partition(" ")
        return int(number) if kind == "peer" else None

    def replay_mismatches(self) -> list[str]:
        """Return a line for each asynchronous peer that differs from a replay of what it applied, in its order.

        Weights must be the same bit for bit, and so must the losses that it was told.
        """
        if self.configuration.workload.mode != "asynchronous":
            return []
        assert isinstance(self.job.settings, TrainingSettings)
        applied = {
            index: [[tuple(each) for each in version["applied"]] for version in report.versions]
            for index, report in enumerate(self.peers.values())
        }
        # The last gradients of a killed peer may have come to others without a report of its own.
        for index, report in enumerate(self.peers.values()):
            known = len(report.versions)
            for versions in applied.values():
                if any(each[0] == index and each[1] > known for version in versions for each in version):
                    return [f"peer {index}: others applied versions that it did not come to"]
        replayed = replay(self.job.settings, len(self.peers), applied)
        return [
            f"peer {index}, version {version['version']}: its {what} are not those of a replay"
            for index, report in enumerate(self.peers.values())
            for version, (digest, losses) in zip(report.versions, replayed[index], strict=True)
            for what, same in (
                ("weights", version["weights_sha256"] == digest),
                ("losses", version["losses"] == losses),
            )
            if not same
        ]

    @property
    def complete(self) -> bool:
        return all(report.left for name, report in self._waited_for())

    def _waited_for(self) -> list[tuple[str, PeerReport]]:
        return [each for each in self.reports.items() if each[0] not in self.killed]

    def progress(self) -> list[Progress]:
        done = min(len(report.versions) for name, report in self.peers.items() if name not in self.killed)
        return [Progress(self.name, done, self.job.settings.rounds)]
