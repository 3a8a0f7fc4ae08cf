"""The single phase of an NDN trial: its job and agents, their events, and whether their results are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradbed.controller.systems.ndn.service import NdnRequest, Prefix
from gradbed.experiments.configuration.faults import AgentFault
from gradbed.experiments.configuration.sections import agent_config
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.ndn.configuration import ALL_REDUCE, NdnConfiguration, NdnTrainingWorkload
from gradbed.hosts.agents.config import worker_addresses
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.fragments import as_sent
from gradbed.hosts.learning.reference import reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.workload import SyntheticWorkload, sum_digest, synthetic_gradient
from gradbed.hosts.systems.ndn.all_reduce import Algorithm, AllReduceConfig
from gradbed.hosts.systems.ndn.config import NdnJob, ObserverConfig, PeerConfig, asked_training
from gradbed.hosts.systems.ndn.training import replay
from gradbed.topo.graph import Topology

# ---- The job ----


MODULE = "gradbed.hosts.systems.ndn.agents"
ALL_REDUCE_MODULE = "gradbed.hosts.systems.ndn.all_reduce"
TRAINING = "training"
MOST_PROBE_US = 1_000_000
"""Largest interval of repeated probes, to which they back off; nominal."""
EPOCHS_A_REFRESH = 0.4
"""Time between two refreshes, in epochs."""


@dataclass(frozen=True)
class NdnJobSetup:
    """Hosts of a job, its learning settings, and what its agents must report."""

    peers: tuple[str, ...]
    """Names of the hosts that train."""
    observers: tuple[str, ...]
    """Names of the hosts that only subscribe."""
    settings: TrainingSettings | SyntheticSettings
    outside: tuple[str, ...] = ()
    """Hosts of further publishers, which are programs of others."""
    weights: Sequence[str] = ()
    """SHA-256 of the weights after each version of synchronous peers, as far as there is a reference."""
    sums: Sequence[str] = ()
    """SHA-256 of the sum of each version of synchronous peers, as far as there is a reference."""
    accuracies: Sequence[float] = ()
    """Test accuracy after each version, of training."""
    mean_losses: Mapping[int, float] = field(default_factory=dict)
    """Mean loss of synchronous peers, by version."""

    @property
    def publishers(self) -> tuple[str, ...]:
        return (*self.peers, *self.outside)

    def rounds_until(self, target_loss: float | None) -> int | None:
        """Return the number of versions that every peer makes.

        None: it is not known, since asynchronous peers know different losses.
        """
        if target_loss is None:
            return self.settings.rounds
        reached = (version for version, loss in sorted(self.mean_losses.items()) if loss < target_loss)
        return 1 + next(reached, self.settings.rounds - 1) if self.mean_losses else None


def job_setup(configuration: NdnConfiguration, topology: Topology, seed: int) -> NdnJobSetup:
    """Return a job on hosts that are spread evenly, with observers on hosts between them where there are any."""
    workload = configuration.workload
    names = [host.name for host in topology.hosts]
    peers = tuple(names[index * len(names) // workload.peers] for index in range(workload.peers))
    rest = [name for name in names if name not in peers]
    return job_on(configuration, seed, peers, tuple(rest[: len(workload.observers)]))


def job_on(
    configuration: NdnConfiguration,
    seed: int,
    peers: tuple[str, ...],
    observers: tuple[str, ...] = (),
    outside: tuple[str, ...] = (),
) -> NdnJobSetup:
    """Return a job on these hosts.

    There is no reference where programs of others publish, as their gradients are not known.
    """
    workload = configuration.workload
    if isinstance(workload, NdnTrainingWorkload):
        training = workload.settings(workload.rounds, seed)
        if workload.mode == "asynchronous" or outside:
            return NdnJobSetup(peers, observers, training, outside)
        expected = list(reference(training, len(peers), workload.lanes))
        return NdnJobSetup(
            peers,
            observers,
            training,
            outside,
            weights=[each.weights_sha256 for each in expected],
            accuracies=[each.accuracy for each in expected],
            mean_losses={each.round: sum(sorted(each.losses)) / len(peers) for each in expected},
        )
    synthetic = workload.settings(workload.rounds, seed)
    sums = [] if outside else _sums(synthetic, len(peers), workload.lanes)
    losses = dict.fromkeys(range(len(sums)), SyntheticWorkload.loss)
    return NdnJobSetup(peers, observers, synthetic, outside, sums=sums, mean_losses=losses)


def _sums(settings: SyntheticSettings, peers: int, lanes: int) -> list[str]:
    digests = []
    for version in range(settings.rounds):
        total = np.zeros(settings.values, np.int64)
        for peer in range(peers):
            total += synthetic_gradient(settings, peer, version)
        digests.append(sum_digest(as_sent(total, lanes)))
    return digests


def ndn_job(job: NdnJobSetup, configuration: NdnConfiguration, scale: Scale, number: int) -> NdnJob:
    """Return the configuration that all agents of a job share, in emulated units."""
    workload = configuration.workload
    assert workload.exchange not in ALL_REDUCE
    rate_bps = scale.rate_bps(configuration.topology.link.rate_mbps)
    # Every host's link takes in what all others send, with unicast also gives out as many copies.
    pace_bps = None
    if rate_bps is not None and workload.pace:
        pace_bps = max(
            1, round(workload.pace * rate_bps / (1 if workload.exchange == "unicast" else len(job.publishers) - 1))
        )
    return agent_config(
        NdnJob,
        scale,
        workload,
        training=TRAINING,
        number=number,
        publishers=job.publishers,
        workload=job.settings,
        pace_bps=pace_bps,
        most_probe_us=scale.time_us(MOST_PROBE_US),
        refresh_us=round(EPOCHS_A_REFRESH * (1 << configuration.routers.emulated_epoch_shift(scale))),
        give_up_us=scale.time_us(1000 * workload.give_up_ms),
    )


def request_of(job: NdnJobSetup, configuration: NdnConfiguration) -> NdnRequest:
    """Return the service request: every publisher under every training name by which others subscribe to it."""
    exchange = configuration.workload.exchange
    if exchange == "unicast":
        pairs = [(other, own) for own in job.peers for other in job.peers if own != other]
        return NdnRequest(
            prefixes=tuple(
                Prefix(name=f"/{asked_training(TRAINING, exchange, other)}/{own}", host=own, consumers=(other,))
                for other, own in pairs
            )
        )
    return NdnRequest(
        prefixes=tuple(Prefix(name=f"/{TRAINING}/{own}", host=own) for own in job.publishers),
        consumers=(*job.publishers, *job.observers),
    )


def agent_specs(
    job: NdnJobSetup, configuration: NdnConfiguration, topology: Topology, scale: Scale, number: int
) -> list[AgentSpec]:
    """Return the agents of a job."""
    workload = configuration.workload
    if workload.exchange == "ring" or workload.exchange == "recursive-doubling":
        return _all_reduce_specs(job, configuration, topology, workload.exchange, number)
    known = ndn_job(job, configuration, scale, number)
    first_slow = len(job.peers) - workload.slow_peers
    peers = [
        AgentSpec(
            host,
            f"{MODULE}:peer",
            f"peer {index}",
            PeerConfig(
                job=known,
                index=index,
                mac=topology.host(host).mac,
                slowness=workload.slowness if index >= first_slow else 1,
            ),
            job=number,
        )
        for index, host in enumerate(job.peers)
    ]
    observers = [
        AgentSpec(
            host,
            f"{MODULE}:observer",
            f"observer {index}",
            ObserverConfig(
                job=known,
                name=host,
                mac=topology.host(host).mac,
                join_us=scale.time_us(1000 * section.join_ms),
                leave_us=None if section.leave_ms is None else scale.time_us(1000 * section.leave_ms),
            ),
            job=number,
        )
        for index, (host, section) in enumerate(zip(job.observers, workload.observers, strict=True))
    ]
    return [*peers, *observers]


def _all_reduce_specs(
    job: NdnJobSetup, configuration: NdnConfiguration, topology: Topology, algorithm: Algorithm, number: int
) -> list[AgentSpec]:
    workload = configuration.workload
    known = CollectiveJob(
        job=number,
        lanes=workload.lanes,
        workers=worker_addresses(topology, job.peers),
        window_fragments=workload.window_fragments,
        workload=job.settings,
    )
    return [
        AgentSpec(
            host,
            f"{ALL_REDUCE_MODULE}:peer",
            f"peer {index}",
            AllReduceConfig(job=known, index=index, algorithm=algorithm),
            job=number,
        )
        for index, host in enumerate(job.peers)
    ]


# ---- The phase ----


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
