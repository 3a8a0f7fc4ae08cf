"""An NDN job before it runs: its hosts, references, and the configuration of its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradbed.controller.systems.ndn.messages import NdnRequest, Prefix
from gradbed.experiments.configuration.sections import describe
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.experiments.systems.ndn.configuration import ALL_REDUCE, NdnConfiguration, NdnTrainingWorkload
from gradbed.hosts.agents.description import worker_addresses
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.fragments import as_sent
from gradbed.hosts.learning.reference import reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.workload import SyntheticWorkload, sum_digest, synthetic_gradient
from gradbed.hosts.systems.ndn.all_reduce import Algorithm, AllReduceDescription
from gradbed.hosts.systems.ndn.description import NdnJob, ObserverDescription, PeerDescription, asked_training
from gradbed.topo.graph import Topology

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
    return describe(
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
    described = ndn_job(job, configuration, scale, number)
    first_slow = len(job.peers) - workload.slow_peers
    peers = [
        AgentSpec(
            host,
            f"{MODULE}:peer",
            f"peer {index}",
            PeerDescription(
                job=described,
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
            ObserverDescription(
                job=described,
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
    described = CollectiveJob(
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
            AllReduceDescription(job=described, index=index, algorithm=algorithm),
            job=number,
        )
        for index, host in enumerate(job.peers)
    ]
