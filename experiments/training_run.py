"""Jobs on a test bed, from their registration at the controller to the last count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.accounting import Tally
from experiments.agents import Agents
from experiments.config import AggregationConfig, JobConfig
from experiments.counts import Counts
from experiments.systems.aggregation.agents import agent_specs
from experiments.systems.aggregation.outcome import ModeOutcome, RoundOutcome
from experiments.testbed import Testbed
from hosts.learning.reference import ReferenceRound
from hosts.learning.settings import ExternalSettings, TrainingSettings
from hosts.protocols.addresses import AgentAddress, WorkerAddress
from hosts.systems.aggregation.description import Exchange, JobDescription
from switch.errors import UserError
from topo.graph import Host, Topology

QUIESCE_TIMEOUT_S = 5.0

OnRound = Callable[[int, RoundOutcome], None]
"""Called with the place of a job among the jobs, and each round of it that has become complete on all workers."""


@dataclass(frozen=True)
class Training:
    """A job to run. reference: what its weights must be. request: further fields of controller.rest.JobRequest.
    exchange: who sums, as in hosts.systems.aggregation.description.JobDescription."""

    workers: tuple[str, ...]
    server: str
    settings: TrainingSettings | ExternalSettings
    reference: Sequence[ReferenceRound]
    request: Mapping[str, Any]
    exchange: Exchange = "server"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those with an agent."""
        return (self.server, *self.workers) if self.exchange == "server" else self.workers


def describe_job(
    topology: Topology, training: Training, network_part: Mapping[str, Any], config: JobConfig
) -> JobDescription:
    """The job description: names become addresses; network_part is the controller's answer to the new job."""

    def address(host: Host) -> dict[str, Any]:
        return {"name": host.name, "ip": host.ip, "mac": host.mac, "gateway_mac": host.gateway_mac}

    policy, slots = network_part["slot_policy"], network_part["slots"]
    return JobDescription(
        job=network_part["job"],
        exchange=training.exchange,
        designations=network_part["designations"],
        multicast=network_part["multicast"],
        slot_policy=policy,
        # In a range of one's own packet numbers take turns: further apart than it is long, they would meet.
        window_fragments=config.window if policy == "dynamic" or slots is None else min(config.window, slots),
        congestion_control=config.congestion_control,
        lanes=config.lanes,
        min_timeout_us=1000 * config.min_timeout_ms,
        workers=tuple(
            WorkerAddress(index=i, **address(topology.host(name))) for i, name in enumerate(training.workers)
        ),
        server=AgentAddress(**address(topology.host(training.server))),
        workload=training.settings,
    )


def start_jobs(
    testbed: Testbed, agents: Agents, trainings: Sequence[Training], config: AggregationConfig
) -> list[JobDescription]:
    """Register jobs at the controller and start their agents; return when all wait to begin."""
    jobs = []
    for training in trainings:
        network_part = testbed.client.add_job(training.workers, training.server, **training.request)
        jobs.append(describe_job(testbed.topology, training, network_part, config))
        agents.start(agent_specs(jobs[-1]))
    return jobs


def run_trainings(
    testbed: Testbed,
    agents: Agents,
    *,
    mode: str,
    trainings: Sequence[Training],
    config: AggregationConfig,
    on_round: OnRound,
) -> list[ModeOutcome]:
    """Register jobs, train them at the same time, and count what they did to the network; one outcome for each.

    Every worker's weights after every round are compared with the reference's; differences are `mismatches`.
    """
    hosts = [host for training in trainings for host in training.hosts]
    jobs = start_jobs(testbed, agents, trainings, config)
    before = Counts.read(testbed, hosts)
    agents.begin()
    follower = _Follower(jobs, trainings, on_round)
    while not follower.complete:
        follower.take(agents.event("round"))
    if not testbed.network.quiesce(QUIESCE_TIMEOUT_S):
        raise UserError(f"packets were still on their way {QUIESCE_TIMEOUT_S:.0f} s after the last round")
    final = agents.stop()
    counts = Counts.read(testbed, hosts).since(before)
    for job in jobs:
        testbed.client.delete_job(job.job)
    return [
        _outcome(
            mode,
            place,
            job.job,
            training,
            follower,
            {name: statistics for (number, name), statistics in final.items() if number == job.job},
            counts,
        )
        for place, (job, training) in enumerate(zip(jobs, trainings, strict=True))
    ]


class _Follower:
    """Takes in the workers' events until all are done."""

    def __init__(self, jobs: Sequence[JobDescription], trainings: Sequence[Training], on_round: OnRound) -> None:
        self._places = {job.job: place for place, job in enumerate(jobs)}
        self._trainings = trainings
        self._on_round = on_round
        self._reports: dict[tuple[int, int], dict[str, Mapping[str, Any]]] = {}
        self.rounds: list[list[RoundOutcome]] = [[] for _ in jobs]
        self.mismatches: list[list[str]] = [[] for _ in jobs]

    @property
    def complete(self) -> bool:
        return all(
            len(rounds) == training.settings.rounds
            for rounds, training in zip(self.rounds, self._trainings, strict=True)
        )

    def take(self, event: Mapping[str, Any]) -> None:
        place = self._places[event["job"]]
        training = self._trainings[place]
        number, name = event["round"], event["name"]
        expected = training.reference[number].weights_sha256
        if event["weights_sha256"] != expected:
            self.mismatches[place].append(
                f"round {number + 1}, {name}: weights {event['weights_sha256'][:12]} instead of {expected[:12]}"
            )
        of_round = self._reports.setdefault((place, number), {})
        of_round[name] = event
        if len(of_round) == len(training.workers):
            self.rounds[place].append(_round_outcome(number, self._reports.pop((place, number))))
            self._on_round(place, self.rounds[place][-1])


def _round_outcome(number: int, reports: Mapping[str, Mapping[str, Any]]) -> RoundOutcome:
    first = reports["worker 0"]
    return RoundOutcome(
        round=number,
        round_time_s=max(report["seconds"] for report in reports.values()),
        accuracy=first["accuracy"],
        loss=sum(report["loss"] for report in reports.values()) / len(reports),
        clipped=sum(report["clipped"] for report in reports.values()),
        weights_sha256=first["weights_sha256"],
    )


def _outcome(
    mode: str,
    place: int,
    number: int,
    training: Training,
    follower: _Follower,
    final: Mapping[str, Mapping[str, Any]],
    counts: Counts,
) -> ModeOutcome:
    names = {training.server: "server", **{name: f"worker {i}" for i, name in enumerate(training.workers)}}
    with_server = training.exchange == "server"
    server = counts.ports[training.server] if with_server else None
    workers = [final[names[host]] for host in training.workers]
    return ModeOutcome(
        mode=mode,
        job=place + 1,
        workers=len(training.workers),
        per_round=tuple(follower.rounds[place]),
        server_in=server.gradients_sent if server else Tally(),
        server_out=server.acknowledgements_received if server else Tally(),
        # What Gloo sends the kernel knows, not the agents.
        accounts=tuple(
            counts.account(host, final[names[host]], by_link=not with_server)
            for host in training.hosts
            if training.exchange != "gloo"
        ),
        resends=sum(worker["timeout_resends"] + worker["early_resends"] for worker in workers),
        direct_copies=sum(worker.get("direct_copies", 0) for worker in workers),
        byte_hops=counts.byte_hops,
        events=counts.events_of(number),
        mismatches=tuple(follower.mismatches[place]),
    )
