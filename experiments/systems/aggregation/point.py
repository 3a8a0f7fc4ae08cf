"""Runs one point of an aggregation study: brings the network up, lets the jobs sum, and says what that took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from controller.planning.hosts import choose_hosts_of_jobs
from controller.systems.aggregation.designation import Designation as Label
from controller.systems.aggregation.placement.problem import AggregationProblem
from controller.systems.aggregation.placement.rates import solve_rates
from controller.systems.aggregation.placement.realised import realised_rates
from experiments import accounting
from experiments.agents import Agents
from experiments.config import AggregationConfig
from experiments.counts import Counts
from experiments.fidelity.meter import FidelityMeter, NetworkCounts
from experiments.fidelity.precedence import take_precedence
from experiments.fidelity.verdict import judge
from experiments.programs import aggregation_program, forward_program
from experiments.scale import Scale
from experiments.system import PointResult, PointTask, Row
from experiments.systems.aggregation.agents import MODULE
from experiments.systems.aggregation.programmable import Hosts, ProgrammableChoice, choose_programmable
from experiments.systems.aggregation.system import LIMITED, AggregationConfiguration, TrainingWorkload
from experiments.testbed import Testbed
from experiments.training_run import Training, start_jobs
from hosts.learning.reference import reference, synthetic_reference
from hosts.learning.settings import SyntheticSettings, TrainingSettings
from hosts.protocols.lanes import frame_bytes
from hosts.systems.aggregation.description import JobDescription
from switch.errors import UserError
from topo.fabric_layout import link_seed
from topo.graph import Topology

QUIESCE_TIMEOUT_S = 5.0
WARM_UP_ROUNDS = 1
"""In the first round windows grow from their start, and timers know no round trip yet."""


@dataclass(frozen=True)
class PointJob:
    """A job of the point. digests: what every worker must report after each round."""

    training: Training
    digests: tuple[str, ...]
    accuracies: tuple[float, ...]

    @property
    def workers(self) -> tuple[str, ...]:
        return self.training.workers

    @property
    def server(self) -> str:
        return self.training.server

    @property
    def has_server(self) -> bool:
        return self.training.exchange == "server"


class MeteredAgents(Agents):
    """Lets the run go first, and measures its fidelity, from when the workers begin to when they are told to stop."""

    def __init__(self, task: PointTask, testbed: Testbed, meter: FidelityMeter) -> None:
        super().__init__(task.folder, testbed.network, preload=[MODULE])
        self._meter = meter

    def begin(self) -> None:
        take_precedence()
        self._meter.begin()
        super().begin()

    def stop(self) -> dict[tuple[int, str], dict[str, Any]]:
        self._meter.end()
        return super().stop()


def run_point(task: PointTask, configuration: AggregationConfiguration) -> PointResult:
    """experiments.system.System.run; in a sandbox, as root."""
    config = emulated_config(configuration, task)
    topology = configuration.topology.build(task.scale)
    hosts = choose_hosts_of_jobs(topology, config.jobs, config.workers)
    choice = choose_programmable(topology, hosts, config.planner_options)
    testbed = _testbed(config, topology, choice, task)
    meter = FidelityMeter(topology, lambda: NetworkCounts.read(testbed.network))
    with MeteredAgents(task, testbed, meter) as agents, testbed:
        jobs = _jobs(configuration, config, hosts, choice)
        if task.capture:
            for job in jobs:
                testbed.network.start_capture(task.folder / f"{job.server}.pcap", job.server)
        measured = _measure(testbed, agents, meter, jobs, config)
    return _result(task, configuration, topology, choice, measured)


def emulated_config(configuration: AggregationConfiguration, task: PointTask) -> AggregationConfig:
    """The study's sections as the configuration that agents and controller go by; rates and times are emulated."""
    switches, workload, scale = configuration.switches, configuration.workload, task.scale
    capacity_bps = scale.rate_bps(switches.capacity_mbps)
    return AggregationConfig(
        topology=configuration.topology.kind,
        lanes=workload.lanes,
        slots=switches.slots,
        congestion_packets=switches.congestion_packets,
        switch=switches.model,
        links=switches.links,
        seed=task.seed,
        jobs=workload.jobs,
        workers=workload.workers,
        placement=switches.placement,
        programmable=switches.maximum if switches.placement in LIMITED else None,
        switch_capacity_mbps=None if capacity_bps is None else capacity_bps / 1e6,
        legacy=switches.legacy,
        slot_policy=switches.slot_policy,
        window=workload.window_fragments,
        congestion_control=workload.congestion_control,
        rounds=workload.rounds,
        min_timeout_ms=math.ceil(scale.time_us(workload.min_timeout_us) / 1000),
    )


def _testbed(config: AggregationConfig, topology: Topology, choice: ProgrammableChoice, task: PointTask) -> Testbed:
    return Testbed(
        topology,
        aggregation_program(config.lanes, config.switch, config.slots),
        task.folder,
        switch_kind=config.switch,
        links=config.links,
        seed=task.seed,
        slots=config.slots,
        legacy={} if config.legacy == "none" else choice.legacy(topology, config.legacy),
        forward_program=forward_program(config.switch) if config.legacy == "p4" else None,
        congestion_packets=config.congestion_packets,
    )


def _jobs(
    configuration: AggregationConfiguration,
    config: AggregationConfig,
    hosts: Sequence[Hosts],
    choice: ProgrammableChoice,
) -> list[PointJob]:
    """Each job has a seed of its own, and with static slots its share of them."""
    if config.slot_policy == "static" and config.slots < config.jobs:
        raise UserError(f"{config.jobs} jobs cannot have a static share each of {config.slots} slots")
    slots: dict[str, Any] = {"slot_policy": config.slot_policy}
    if config.slot_policy == "static":
        slots["slots"] = config.slots // config.jobs
    jobs = []
    for place, ((workers, server), request) in enumerate(zip(hosts, choice.requests, strict=True)):
        settings = _settings(configuration, config.seed + place)
        if isinstance(settings, SyntheticSettings):
            digests = tuple(synthetic_reference(settings, len(workers), config.lanes))
            accuracies: tuple[float, ...] = ()
        else:
            expected = list(reference(settings, len(workers), config.lanes))
            digests = tuple(round_.weights_sha256 for round_ in expected)
            accuracies = tuple(round_.accuracy for round_ in expected)
        training = Training(
            workers,
            server,
            cast(TrainingSettings, settings),  # of either kind: it is passed on as it is
            reference=(),
            request={**request, **slots} if configuration.workload.exchange == "server" else {"placement": "none"},
            exchange=configuration.workload.exchange,
        )
        jobs.append(PointJob(training, digests, accuracies))
    return jobs


def _settings(configuration: AggregationConfiguration, seed: int) -> TrainingSettings | SyntheticSettings:
    workload = configuration.workload
    if isinstance(workload, TrainingWorkload):
        return TrainingSettings(
            hidden_units=workload.hidden_units,
            rounds=workload.rounds,
            batch_samples=workload.batch_samples,
            learning_rate=workload.learning_rate,
            seed=seed,
        )
    return SyntheticSettings(values=workload.values, rounds=workload.rounds, seed=seed)


@dataclass(frozen=True)
class Measured:
    """What the run of all jobs left. rounds: by job, of every round the slowest worker's time in seconds."""

    jobs: Sequence[PointJob]
    descriptions: Sequence[JobDescription]
    rounds: Sequence[Sequence[float]]
    mismatches: Sequence[str]
    final: Mapping[tuple[int, str], Mapping[str, Any]]
    counts: Counts
    meter: FidelityMeter


def _measure(
    testbed: Testbed, agents: Agents, meter: FidelityMeter, jobs: Sequence[PointJob], config: AggregationConfig
) -> Measured:
    hosts = [host for job in jobs for host in job.training.hosts]
    before = Counts.read(testbed, hosts)
    descriptions = start_jobs(testbed, agents, [job.training for job in jobs], config)
    agents.begin()
    rounds, mismatches = _follow(agents, jobs, descriptions)
    if not testbed.network.quiesce(QUIESCE_TIMEOUT_S):
        raise UserError(f"packets were still on their way {QUIESCE_TIMEOUT_S:.0f} s after the last round")
    final = agents.stop()
    counts = Counts.read(testbed, hosts).since(before)
    return Measured(jobs, descriptions, rounds, mismatches, final, counts, meter)


def _follow(
    agents: Agents, jobs: Sequence[PointJob], descriptions: Sequence[JobDescription]
) -> tuple[list[list[float]], list[str]]:
    """Take in the workers' reports until all rounds are done: (round times by job, wrong sums)."""
    place_of = {description.job: place for place, description in enumerate(descriptions)}
    slowest_s = [[0.0] * job.training.settings.rounds for job in jobs]
    mismatches = []
    for _ in range(sum(len(job.workers) * job.training.settings.rounds for job in jobs)):
        event = agents.event("round")
        place, number = place_of[event["job"]], event["round"]
        slowest_s[place][number] = max(slowest_s[place][number], event["seconds"])
        found = event.get("sums_sha256") or event["weights_sha256"]
        if found != jobs[place].digests[number]:
            mismatches.append(f"job {place + 1}, round {number + 1}, {event['name']}: not the sum of the reference")
    return slowest_s, mismatches


def _result(
    task: PointTask,
    configuration: AggregationConfiguration,
    topology: Topology,
    choice: ProgrammableChoice,
    measured: Measured,
) -> PointResult:
    accounts = {
        (place, host): measured.counts.account(
            host, measured.final[description.job, name], by_link=not job.has_server
        )
        for place, (job, description) in enumerate(zip(measured.jobs, measured.descriptions, strict=True))
        for host, name in _agent_names(job)
    }
    drops = sum(account.socket_drops for account in accounts.values())
    received = sum(account.host_received.packets for account in accounts.values())
    return PointResult(
        metrics=_metrics(topology, configuration, task.scale, choice, measured),
        fidelity=judge(measured.meter.measures(drops, drops + received)),
        decisions={
            "programmable": list(choice.switches),
            "hosts": [[job.server, *job.workers] for job in measured.jobs],
            "designations": [
                [[d.model_dump() for d in own] for own in description.designations]
                for description in measured.descriptions
            ],
            # The n-th packet of a direction has the n-th draw of its generator, whatever the time.
            "link_seeds": {f"{link.a.node}-{link.b.node}": link_seed(task.seed, link) for link in topology.links},
            "digests": [job.digests for job in measured.jobs],
        },
        tables={
            "rounds": list(_round_rows(measured)),
            "jobs": list(_job_rows(topology, configuration, task.scale, choice, measured)),
            "hosts": [
                {"job": place + 1, **row}
                for (place, _), account in accounts.items()
                for row in _host_rows(place + 1, account)
            ],
            "links": [row for row in measured.meter.link_rows() if row["packets"]],
            "events": [dict(measured.counts.events)],
        },
        failures=[*measured.mismatches[:5], *accounting.disagreements(accounts.values())[:5]],
    )


def _agent_names(job: PointJob) -> list[tuple[str, str]]:
    """(host, agent) for each agent."""
    workers = [(host, f"worker {index}") for index, host in enumerate(job.workers)]
    return [(job.server, "server"), *workers] if job.has_server else workers


def _host_rows(job: int, account: accounting.HostAccount) -> Iterable[Row]:
    return accounting.rows("study", job, [account])


def _metrics(
    topology: Topology,
    configuration: AggregationConfiguration,
    scale: Scale,
    choice: ProgrammableChoice,
    measured: Measured,
) -> dict[str, Any]:
    """Of all jobs: the mean of throughputs and of round times, sums of everything else, all for a round."""
    rounds = configuration.workload.rounds
    rows = list(_job_rows(topology, configuration, scale, choice, measured))
    throughputs = [row["throughput_bps"] for row in rows]
    # A bound knows of no other job: for several it would be one that nobody can reach.
    bound_bps = rows[0]["bound_bps"] if len(rows) == 1 else None
    events = measured.counts.events
    found = events.get("claimed", 0) + events.get("added", 0)
    refused = events.get("collision", 0) + events.get("contention", 0)
    accuracies = [job.accuracies[-1] for job in measured.jobs if job.accuracies]
    servers = [measured.counts.ports[job.server].gradients_sent for job in measured.jobs if job.has_server]
    return {
        "programmable": len(choice.switches) if _sums_in_switches(configuration) else 0,
        "throughput_bps": statistics.fmean(throughputs),
        "wire_throughput_bps": statistics.fmean(row["wire_throughput_bps"] for row in rows),
        "bound_bps": bound_bps,
        "packet_bound_bps": rows[0]["packet_bound_bps"] if len(rows) == 1 else None,
        "bound_share": None if bound_bps is None else throughputs[0] / bound_bps,
        "round_time_s": statistics.fmean(row["round_time_s"] for row in rows),
        "server_bytes": sum(tally.bytes for tally in servers) / rounds,
        "server_packets": sum(tally.packets for tally in servers) / rounds,
        "byte_hops": sum(row["bytes"] for row in measured.meter.link_rows()) / rounds,
        "resends": sum(row["resends"] for row in rows) / rounds,
        "slot_success": found / (found + refused) if found + refused else None,
        "fairness": jain_index(throughputs),
        "accuracy": statistics.fmean(accuracies) if accuracies else None,
    }


def _sums_in_switches(configuration: AggregationConfiguration) -> bool:
    return configuration.switches.placement != "none" and configuration.workload.exchange == "server"


def jain_index(values: Sequence[float]) -> float:
    """1 if all are equal, 1/n if one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def _job_rows(
    topology: Topology,
    configuration: AggregationConfiguration,
    scale: Scale,
    choice: ProgrammableChoice,
    measured: Measured,
) -> Iterable[dict[str, Any]]:
    for place, (job, description) in enumerate(zip(measured.jobs, measured.descriptions, strict=True)):
        round_time_s = statistics.median(_after_warm_up(measured.rounds[place]))
        gradient_bits = 8 * description.fragments_per_round * frame_bytes(description.lanes)
        workers = [measured.final[description.job, f"worker {index}"] for index in range(len(job.workers))]
        bound_bps, packet_bound_bps = _bounds_bps(topology, configuration, scale, choice, job, description)
        yield {
            "job": place + 1,
            "server": job.server,
            "round_time_s": round_time_s,
            "throughput_bps": gradient_bits / round_time_s,
            "wire_throughput_bps": wire_bits(job, description, measured) / round_time_s,
            "bound_bps": bound_bps,
            "packet_bound_bps": packet_bound_bps,
            "gradient_bytes": gradient_bits // 8,
            "resends": sum(worker["timeout_resends"] + worker["early_resends"] for worker in workers),
            "direct_copies": sum(worker.get("direct_copies", 0) for worker in workers),
        }


def _after_warm_up(rounds: Sequence[float]) -> Sequence[float]:
    return rounds[WARM_UP_ROUNDS:] or rounds


def wire_bits(job: PointJob, description: JobDescription, measured: Measured) -> float:
    """What came from a worker in a round, less what was sent again; of the worker with the least.

    Switches counted a worker's gradients. They know no ring packets: those the link counted, ACKs taken off.
    """
    frame = frame_bytes(description.lanes)
    counted: list[float] = []
    for index, host in enumerate(job.workers):
        statistics_of = measured.final[description.job, f"worker {index}"]
        again = sum(statistics_of.get(name, 0) for name in ("timeout_resends", "early_resends", "direct_copies"))
        account = measured.counts.account(host, statistics_of, by_link=not job.has_server)
        acknowledged = 0 if job.has_server else statistics_of["acknowledgement_sent"]["bytes"]
        counted.append(8 * (account.switch_received.bytes - acknowledged - again * frame))
    return min(counted) / job.training.settings.rounds


def _bounds_bps(
    topology: Topology,
    configuration: AggregationConfiguration,
    scale: Scale,
    choice: ProgrammableChoice,
    job: PointJob,
    description: JobDescription,
) -> tuple[float | None, float | None]:
    """What the linear program allows this job alone, with the switches that sum, and what packets can reach with the
    job's labels while global sums come back; None without a server, or where a link has no rate."""
    if not job.has_server or any(link.model.rate_bps is None for link in topology.links):
        return None, None
    capacity_bps = scale.rate_bps(configuration.switches.capacity_mbps)
    problem = AggregationProblem.of(topology, job.workers, job.server, capacity_bps)
    labels = {
        worker: tuple(Label(**label.model_dump()) for label in own)
        for worker, own in zip(job.workers, description.designations or [()] * len(job.workers), strict=True)
    }
    packets_bps = realised_rates(problem, labels, returned_sums=True).gamma_bps
    if configuration.switches.placement == "none":
        return solve_rates(problem, (), server_tor=False).gamma_bps, packets_bps
    switches = [name for name in choice.switches if name != problem.server_tor]
    return solve_rates(problem, switches).gamma_bps, packets_bps


def _round_rows(measured: Measured) -> Iterable[Row]:
    for place, (job, times) in enumerate(zip(measured.jobs, measured.rounds, strict=True)):
        for number, seconds in enumerate(times):
            accuracy = {"accuracy": job.accuracies[number]} if job.accuracies else {}
            yield {"job": place + 1, "round": number, "round_time_s": seconds, **accuracy}
