"""The single phase of a compression trial: competing traffic, events of its agents, and whether their sums are
right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.controller.systems.compression.service import CompressionJobRequest
from gradbed.experiments.configuration.faults import AgentFault
from gradbed.experiments.configuration.sections import agent_config
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.compression.configuration import (
    CompetingTrafficSection,
    CompressionConfiguration,
    CompressionScriptWorkload,
    CompressionSyntheticWorkload,
    CompressionTrainingWorkload,
)
from gradbed.experiments.torch_scripts import SILENCE_US, ScriptWorkers
from gradbed.experiments.traffic.agents import AGENT, NAME
from gradbed.hosts.agents.config import AgentAddress, worker_addresses
from gradbed.hosts.compressors.fingerprint import MODULUS
from gradbed.hosts.learning.settings import ExternalSettings, SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.compression.config import CompressionJob, CompressionWorker
from gradbed.hosts.traffic.config import EndpointConfig, Sizes, TrafficStream
from gradbed.topo.graph import Topology

# ---- Competing traffic ----


_SENDER, _RECEIVER = 0, 1
"""Numbers of the two hosts in packets."""


def background_agents(
    section: CompetingTrafficSection, sender: str, server: str, topology: Topology, scale: Scale, seed: int, job: int
) -> list[AgentSpec]:
    """Return the agents of the competing traffic in both hosts.

    Args:
        topology: in emulated units.
    """
    link_bps = topology.link(server, topology.attachment(server).name).model.rate_bps
    assert link_bps is not None
    stream = TrafficStream(
        destination=AgentAddress.of(topology.host(server)),
        receiver=_RECEIVER,
        rate_bps=section.load * link_bps,
        dst_mac=topology.destination_mac(sender, server),
    )
    return [
        AgentSpec(
            host,
            AGENT,
            NAME.format(host),
            EndpointConfig(
                address=AgentAddress.of(topology.host(host)),
                source=source,
                streams=(stream,) if source == _SENDER else (),
                sizes=Sizes(frame_bytes=section.frame_bytes),
                link_rate_bps=link_bps,
                begin_us=scale.time_us(1000 * section.from_ms),
                duration_us=max(1, scale.time_us(1000 * section.duration_ms)),
                seed=seed,
            ),
            0,
            job,
        )
        for host, source in ((sender, _SENDER), (server, _RECEIVER))
    ]


def background_loss(
    final: Mapping[tuple[int, str], Mapping[str, Any]], sender: str, server: str, job: int
) -> float | None:
    """Return the fraction of the competing datagrams that was lost; None if none were sent."""
    sent = sum(final.get((job, NAME.format(sender)), {}).get("sent_flows", {}).get("packets", ()))
    came = sum(final.get((job, NAME.format(server)), {}).get("flows", {}).get("packets", ()))
    return 1 - came / sent if sent else None


# ---- The phase ----


MODULE = "gradbed.hosts.systems.compression.agents"
WORKER_RANK = 1
"""Stop rank of workers; the server stops first."""

EXPONENT = 26
"""Gradients are scaled by 2^26: values of up to 32 fit an int32, and steps are of 1.5e-8."""


@dataclass
class CompressionRoundReport:
    """Events of one round."""

    trained: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per worker, fingerprints of what its trainer handed over and got back."""
    exchanged: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per worker, what its network side sent and held back."""
    round: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per worker, the result of the round."""
    received: dict[str, int] = field(default_factory=dict)
    """Per worker, the fingerprint of what the server received of it."""
    sum: int | None = None
    """Fingerprint of the server's sum; None: the server has not reported it."""


class CompressionPhase(Phase):
    """Workers of one job send compressed gradients to the server, and get the sum back."""

    def __init__(
        self,
        hosts: tuple[Sequence[str], str],
        background_sender: str | None,
        topology: Topology,
        task: TrialTask[CompressionConfiguration],
    ) -> None:
        self.workers, self.server = tuple(hosts[0]), hosts[1]
        super().__init__("compression", [CompressionJobRequest(workers=self.workers, server=self.server)])
        self.background_sender = background_sender
        """Host that sends competing traffic; None: there is none."""
        self.topology = topology
        self.task = task
        self.configuration = configuration = task.configuration
        workload = configuration.workload
        rounds = 0 if isinstance(workload, CompressionScriptWorkload) else workload.rounds
        self.rounds = [CompressionRoundReport() for _ in range(rounds)]
        self.left: dict[str, int] = {}
        """Round, from 0, in which each worker left before the end."""
        self.stopped = {
            fault.agent
            for fault in configuration.faults
            if isinstance(fault, AgentFault) and fault.fault == "agent-stop"
        }
        self.config: CompressionJob | None = None
        self._background_agents_done = 0
        # What the server that runs now has received of a round that it has not summed yet.
        self._gathered: defaultdict[int, dict[str, int]] = defaultdict(dict)

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        (answer,) = answers
        self.config = job = self._job_config(answer)
        return [
            self.server_spec(job),
            *(
                AgentSpec(
                    host,
                    f"{MODULE}:worker",
                    f"worker {index}",
                    CompressionWorker(job=job, index=index),
                    WORKER_RANK,
                    job.job,
                )
                for index, host in enumerate(self.workers)
            ),
            *self._background(job.job),
        ]

    def _background(self, job: int) -> list[AgentSpec]:
        if self.background_sender is None:
            return []
        section, task = self.configuration.background, self.task
        return background_agents(
            section, self.background_sender, self.server, self.topology, task.scale, task.seed, job
        )

    def server_spec(self, job: CompressionJob) -> AgentSpec:
        return AgentSpec(self.server, f"{MODULE}:server", "server", job, 0, job.job)

    def _job_config(self, answer: Mapping[str, Any]) -> CompressionJob:
        configuration = self.configuration
        transport, ratio = configuration.transport, configuration.ratio
        return agent_config(
            CompressionJob,
            self.task.scale,
            configuration.compression,
            ratio,
            transport,
            job=answer["job"],
            workers=worker_addresses(self.topology, self.workers),
            server=AgentAddress.of(self.topology.host(self.server)),
            multicast=answer["multicast"],
            server_link_bps=answer["server_link_bps"],
            ratio=ratio.rule,
            ratio_floor=ratio.floor,
            window_fragments=transport.window_packets,
            workload=self._settings(),
        )

    def _settings(self) -> TrainingSettings | SyntheticSettings | ExternalSettings:
        workload, seed = self.configuration.workload, self.task.seed
        if isinstance(workload, CompressionTrainingWorkload):
            return workload.settings(workload.rounds, seed, EXPONENT)
        if isinstance(workload, CompressionSyntheticWorkload):
            return workload.settings(workload.rounds, seed)
        return ExternalSettings(exponent=EXPONENT)

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        kind = event["event"]
        if kind == "left":
            self.left[f"worker {event['worker']}"] = event["round"]
        elif kind == "sent":
            self._background_agents_done += 1
        elif kind in ("trained", "exchanged", "round", "received", "sum"):
            self._take_round(kind, event)
        return None

    def _take_round(self, kind: str, event: Mapping[str, Any]) -> None:
        report = self._report(event["round"])
        if kind == "received":
            gathered = self._gathered[event["round"]]
            gathered[f"worker {event['worker']}"] = event["fingerprint"]
            if report.sum is None:
                report.received = gathered
        elif kind == "sum":
            report.received, report.sum = self._gathered.pop(event["round"], {}), event["fingerprint"]
        else:
            getattr(report, kind)[event["name"]] = event

    def _report(self, number: int) -> CompressionRoundReport:
        return self.rounds[number]

    @property
    def background_is_over(self) -> bool:
        return self._background_agents_done == (0 if self.background_sender is None else 2)

    @property
    def names(self) -> list[str]:
        """Names of the workers that are there to the end."""
        gone = self.left.keys() | self.stopped
        return [name for name in (f"worker {i}" for i in range(len(self.workers))) if name not in gone]

    def _done(self) -> int:
        names = set(self.names)
        return sum(names <= report.round.keys() for report in self.rounds)

    @property
    def complete(self) -> bool:
        return self._done() == len(self.rounds) and self.background_is_over

    def progress(self) -> list[Progress]:
        return [Progress("gradients", self._done(), len(self.rounds))]

    def mismatches(self) -> list[str]:
        """Return a line for each wrong sum or gradient."""
        return [*self._wrong_sums(), *self._wrong_gradients()]

    def _wrong_sums(self) -> Iterator[str]:
        for number, report in enumerate(self.rounds):
            where = f"round {number + 1}"
            if not report.round:
                yield f"{where}: no worker was there to its end"
                continue
            if report.sum != sum(report.received.values()) % MODULUS:
                yield f"{where}: the server's sum is not that of what it received"
            for name, reported in report.trained.items():
                if reported["sum_fingerprint"] != report.sum:
                    yield f"{where}, {name}: the sum that came is not the server's"
            digests = {
                reported.get("weights_sha256") or reported.get("sums_sha256") for reported in report.round.values()
            }
            if len(digests) > 1:
                yield f"{where}: workers have different results"

    def _wrong_gradients(self) -> Iterator[str]:
        """Compare what the server received of a worker, and what that holds back, with what its trainer handed
        over.

        With error feedback this holds over all rounds so far, without it for each round by itself.
        """
        keeps = self.configuration.compression.error_feedback
        missing = dict.fromkeys((f"worker {index}" for index in range(len(self.workers))), 0)
        for number, report in enumerate(self.rounds):
            where = f"round {number + 1}"
            for name, reported in report.exchanged.items():
                if number >= self.left.get(name, len(self.rounds)):
                    continue  # the server does not wait for it any more, though it may go on
                if reported["sent_fingerprint"] != report.received.get(name):
                    yield f"{where}, {name}: the server received something else than was sent"
                trained = report.trained.get(name)
                if trained is None:
                    continue
                came = trained["gradient_fingerprint"] + reported["momentum_fingerprint"]
                missing[name] = keeps * missing[name] + came - report.received.get(name, 0)
                if (missing[name] - reported["held_fingerprint"]) % MODULUS:
                    yield f"{where}, {name}: what was sent and what is held back are not all gradients"


# ---- PyTorch scripts ----


class CompressionScriptPhase(ScriptWorkers, CompressionPhase):
    """A PyTorch script, for as many rounds as it takes."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        patience = {"give_up_us": SILENCE_US, "left_after_us": SILENCE_US}
        self.config = self._job_config(answers[0]).model_copy(update=patience)
        scripts = self._ranks.specs(self.config, f"{MODULE}:open_exchange", WORKER_RANK)
        return [*scripts, *self._background(self.config.job)]

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        super().take(event)
        if not self._ranks.take(event):
            return None
        assert self.config is not None
        workload = self.config.workload.model_copy(update={"values": self._ranks.values})
        self.config = self.config.model_copy(update={"workload": workload})
        return [self.server_spec(self.config)]

    def _report(self, number: int) -> CompressionRoundReport:
        while len(self.rounds) <= number:
            self.rounds.append(CompressionRoundReport())
        return self.rounds[number]

    @property
    def complete(self) -> bool:
        return self._ranks.complete and self.background_is_over
