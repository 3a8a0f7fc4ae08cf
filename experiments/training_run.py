"""One job on a test bed, from its registration at the controller to the last count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.agents import Agents
from experiments.config import AggregationConfig
from experiments.counts import Counts
from experiments.outcome import ModeOutcome, RoundOutcome
from experiments.testbed import Testbed
from hosts.job import AgentAddress, JobDescription, WorkerAddress
from hosts.learning.reference import ReferenceRound
from hosts.learning.settings import TrainingSettings
from switch.errors import UserError
from topo.graph import Host, Topology

QUIESCE_TIMEOUT_S = 5.0

OnRound = Callable[[RoundOutcome], None]
"""Called with each round that has become complete on all workers."""


def describe_job(
    topology: Topology,
    workers: Sequence[str],
    server: str,
    network_part: Mapping[str, Any],
    training: TrainingSettings,
    config: AggregationConfig,
) -> JobDescription:
    """The job description: names become addresses; network_part is the controller's answer to the new job."""

    def address(host: Host) -> dict[str, Any]:
        return {"name": host.name, "ip": host.ip, "mac": host.mac, "gateway_mac": host.gateway_mac}

    return JobDescription(
        **network_part,
        lanes=config.lanes,
        min_timeout_us=1000 * config.min_timeout_ms,
        workers=tuple(WorkerAddress(index=i, **address(topology.host(name))) for i, name in enumerate(workers)),
        server=AgentAddress(**address(topology.host(server))),
        training=training,
    )


def run_training(
    testbed: Testbed,
    agents: Agents,
    *,
    mode: str,
    aggregation: bool,
    workers: Sequence[str],
    server: str,
    training: TrainingSettings,
    config: AggregationConfig,
    reference: Sequence[ReferenceRound],
    on_round: OnRound,
) -> ModeOutcome:
    """Register a job, train it, and count what it did to the network.

    Every worker's weights after every round are compared with the reference's; differences are `mismatches`.
    """
    hosts = [server, *workers]
    before = Counts.read(testbed, hosts)
    network_part = testbed.client.add_job(workers, server, aggregation)
    job = describe_job(testbed.topology, workers, server, network_part, training, config)
    agents.start(testbed, job)
    agents.begin()
    rounds, mismatches = _follow_rounds(agents, job, reference, on_round)
    if not testbed.network.quiesce(QUIESCE_TIMEOUT_S):
        raise UserError(f"packets were still on their way {QUIESCE_TIMEOUT_S:.0f} s after the last round")
    final = agents.stop()
    counts = Counts.read(testbed, hosts).since(before)
    testbed.client.delete_job(job.job)
    names = {server: "server", **{name: f"worker {i}" for i, name in enumerate(workers)}}
    return ModeOutcome(
        mode=mode,
        workers=len(workers),
        per_round=tuple(rounds),
        server_in=counts.ports[server].gradient_out,
        server_out=counts.ports[server].acknowledgement_in,
        accounts=tuple(counts.account(host, final[names[host]]) for host in hosts),
        resends=sum(final[names[host]]["timeout_resends"] + final[names[host]]["early_resends"] for host in workers),
        events=dict(counts.events),
        mismatches=tuple(mismatches),
    )


def _follow_rounds(
    agents: Agents, job: JobDescription, reference: Sequence[ReferenceRound], on_round: OnRound
) -> tuple[list[RoundOutcome], list[str]]:
    """Take in the workers' events until all are done; the rounds, and where weights differ from the reference."""
    reports: dict[int, dict[str, dict[str, Any]]] = {}
    rounds: list[RoundOutcome] = []
    mismatches: list[str] = []
    while len(rounds) < job.training.rounds:
        event = agents.event("round")
        number, name = event["round"], event["name"]
        expected = reference[number].weights_sha256
        if event["weights_sha256"] != expected:
            mismatches.append(
                f"round {number + 1}, {name}: weights {event['weights_sha256'][:12]} instead of {expected[:12]}"
            )
        of_round = reports.setdefault(number, {})
        of_round[name] = event
        if len(of_round) == len(job.workers):
            rounds.append(_round_outcome(number, reports.pop(number)))
            on_round(rounds[-1])
    return rounds, mismatches


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
