"""Metrics and table rows of an aggregation trial; rates and times are nominal."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradbed.controller.systems.aggregation.placement.labels import achievable_rates
from gradbed.controller.systems.aggregation.placement.options import stored_rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.experiments.conservation.counts import Counts, HostAccount, Tally
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.aggregation.phase import (
    PARAMETER_SERVER,
    AggregationJobSetup,
    AggregationPhase,
    Bounds,
)
from gradbed.experiments.tables.files import Row
from gradbed.experiments.tables.metric import Metric
from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.lanes import frame_bytes
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.ring import RING, RING_PORT, RingFlags
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.topo.graph import Topology

# ---- Packet classes ----


def _gradient(name: str, mask: Flags, value: Flags, *becomes: str) -> PacketClass:
    words = (bits_of(GRADIENT, "flags", DATAGRAM_BYTES, mask, value), *udp_datagram(GRADIENT_PORT))
    return PacketClass(name, words, frozenset(becomes))


def _ring(name: str, value: RingFlags) -> PacketClass:
    return PacketClass(name, (bits_of(RING, "flags", DATAGRAM_BYTES, RingFlags.ACK, value), *udp_datagram(RING_PORT)))


_KINDS = Flags.ACK | Flags.NACK | Flags.PARTIAL

CLASSES = (
    # A switch that adds the last of them sends the sum on in its place.
    _gradient("gradient", _KINDS, Flags(0), "partial sum"),
    _gradient("partial sum", _KINDS, Flags.PARTIAL),
    _gradient("NACK", Flags.ACK | Flags.NACK, Flags.ACK | Flags.NACK),
    _gradient("ACK", Flags.ACK, Flags.ACK),
    _ring("ring ACK", RingFlags.ACK),
    _ring("ring", RingFlags(0)),
)


# ---- Counters ----


EVENTS = (
    "claimed",
    "added",
    "completed",
    "duplicate",
    "collision",
    "stale",
    "overlap",
    "resend_summed",
    "resend_single",
    "released",
    "reclaimed",
    "contention",
    "exhaustion",
    "overflow",
    "repeated",
)
"""Events by index in a job's cells of the counter `events`; p4src/include/aggregation/events.p4 describes each."""

EVENT_CELLS = 16
"""Number of cells of the counter `events` for each job."""
EVENT_JOBS = 64
"""Number of jobs with cells of their own: a job's cells are those of its number modulo this."""


def event_at(index: int) -> tuple[int, str]:
    """Return the job, modulo EVENT_JOBS, and the event that a cell of the counter `events` counts."""
    return index // EVENT_CELLS, EVENTS[index % EVENT_CELLS]


def events_of(counts: Counts, job: int | None = None) -> dict[str, int]:
    """Return the packets of each event, summed over all switches, of one job (its number) or of all."""
    together: Counter[str] = Counter()
    for counters in counts.counters.values():
        for index, tally in counters.get("events", {}).items():
            cell_job, event = event_at(index)
            if job is None or cell_job == job % EVENT_JOBS:
                together[event] += tally.packets
    return dict(together)


def gradients_to(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return the gradients and sums that a host's switch sent to it.

    Legacy switches cannot tell them from ACKs and count zero.
    """
    return _at_port(counts, topology, host, "gradient_out")


def acks_from(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return the ACKs that a host's switch received from it."""
    return _at_port(counts, topology, host, "acknowledgement_in")


def received_from(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return all packets of the system that a host's switch received from it."""
    names = ("port_in",) if _is_legacy(counts, topology, host) else ("gradient_in", "acknowledgement_in")
    return sum((_at_port(counts, topology, host, name) for name in names), Tally())


def sent_to(counts: Counts, topology: Topology, host: str) -> Tally:
    """Return all packets of the system that a host's switch sent to it."""
    names = ("port_out",) if _is_legacy(counts, topology, host) else ("gradient_out", "acknowledgement_out")
    return sum((_at_port(counts, topology, host, name) for name in names), Tally())


def account(
    counts: Counts, topology: Topology, host: str, statistics: Mapping[str, Any], *, by_link: bool
) -> HostAccount:
    """Return the counts at both ends of a host's link.

    Args:
        statistics: final statistics of the host's agent.
        by_link: take the link's own counts for the switch's, as P4 switches count gradient packets alone.
    """
    switch = topology.attachment(host).name
    sent, received = _agent_counted(statistics, "sent"), _agent_counted(statistics, "received")
    made = counts.link_account(host, switch, sent, received, statistics["socket_drops"])
    if by_link:
        return made
    return replace(
        made, switch_received=received_from(counts, topology, host), switch_sent=sent_to(counts, topology, host)
    )


def _agent_counted(statistics: Mapping[str, Any], direction: str) -> Tally:
    kinds = (statistics[f"{kind}_{direction}"] for kind in ("gradient", "acknowledgement"))
    return sum((Tally(kind["frames"], kind["bytes"]) for kind in kinds), Tally())


def _at_port(counts: Counts, topology: Topology, host: str, counter: str) -> Tally:
    switch = topology.attachment(host).name
    return counts.cell(switch, counter, topology.port(switch, host))


def _is_legacy(counts: Counts, topology: Topology, host: str) -> bool:
    return counts.has(topology.attachment(host).name, "port_in")


WARM_UP_ROUNDS = 1
"""Rounds left out of times: in the first one windows grow from their start, and timers know no round trip yet."""

SHARE = (0.0, 1.0)

METRICS = {
    "programmable": Metric("", "switches that sum, the servers' ToRs among them"),
    "throughput_bps": Metric("bit/s", "aggregation throughput", "rate"),
    "wire_throughput_bps": Metric("bit/s", "aggregation throughput, as switches counted it", "rate"),
    "bound_bps": Metric("bit/s", "upper bound from the linear program", "rate"),
    "packet_bound_bps": Metric("bit/s", "upper bound for the chosen packet labels", "rate"),
    "bound_share": Metric("", "throughput / upper bound", possible=SHARE),
    "round_time_s": Metric("s", "median round time of the slowest worker, from its own start", "time"),
    "mean_round_time_s": Metric("s", "mean round time of the slowest worker; includes rare timeouts", "time"),
    "synchronous_round_time_s": Metric("s", "median round time, first worker's start to last worker's end", "time"),
    "server_bytes": Metric("B", "gradient bytes into the servers' links, per round"),
    "server_packets": Metric("", "gradient packets into the servers' links, per round"),
    "server_share": Metric("", "gradient bytes into the servers' links / those of the server alone", possible=SHARE),
    "byte_hops": Metric("B", "bytes times hops, per round"),
    "resends": Metric("", "gradient packets resent, per round"),
    "slot_success": Metric("", "fraction of fragments' first packets at a switch that found a slot", possible=SHARE),
    "fairness": Metric("", "Jain's index over the jobs' throughputs", possible=SHARE),
    "accuracy": Metric("", "test accuracy", possible=SHARE),
}


def metrics(phases: Sequence[AggregationPhase], main: int, measured: Sequence[PhaseResult]) -> dict[str, Any]:
    """Return the metrics of the phase number `main`, over all its jobs.

    Throughputs and round times are means over jobs, everything else is a sum; all are per round. server_share needs
    the phase of the server alone.
    """
    phase, found = phases[main], measured[main]
    shared = phase.shared
    rounds = len(phase.rounds[0])
    if not rounds:  # a script that registered no model
        return dict.fromkeys(METRICS)
    rows = list(job_rows(phase, found))
    throughputs = [row["throughput_bps"] for row in rows]
    # The bound is that of a job alone: several jobs cannot reach it together.
    bound_bps = rows[0]["bound_bps"] if len(rows) == 1 else None
    events = events_of(found.network.counts)
    taken = events.get("claimed", 0) + events.get("added", 0)
    refused = events.get("collision", 0) + events.get("contention", 0)
    accuracies = [job.accuracies[-1] for job in phase.jobs if job.accuracies]
    server = _into_servers(phase, found)
    alone = next((i for i, each in enumerate(phases) if each.name == PARAMETER_SERVER), None)
    alone_bytes = None if alone is None else _into_servers(phases[alone], measured[alone]).bytes
    sums = phase.exchange == "server" and shared.configuration.switches.placement != "none"
    server_counts = {
        "server_bytes": server.bytes / rounds,
        "server_packets": server.packets / rounds,
        "server_share": server.bytes / alone_bytes if alone_bytes and phase.exchange == "server" else None,
    }
    if shared.fabric_program is not None or any(job.server in shared.raw_frames for job in phase.jobs):
        server_counts = dict.fromkeys(server_counts)
    wire_bps, resends = ([row[name] for row in rows] for name in ("wire_throughput_bps", "resends"))
    return {
        "programmable": len(shared.summing) if sums else 0,
        "throughput_bps": statistics.fmean(throughputs),
        "wire_throughput_bps": None if None in wire_bps else statistics.fmean(wire_bps),
        "bound_bps": bound_bps,
        "packet_bound_bps": rows[0]["packet_bound_bps"] if len(rows) == 1 else None,
        "bound_share": None if bound_bps is None else throughputs[0] / bound_bps,
        "round_time_s": statistics.fmean(row["round_time_s"] for row in rows),
        "mean_round_time_s": statistics.fmean(row["mean_round_time_s"] for row in rows),
        "synchronous_round_time_s": statistics.fmean(row["synchronous_round_time_s"] for row in rows),
        **server_counts,
        "byte_hops": found.network.counts.byte_hops / rounds,
        "resends": None if None in resends else sum(resends) / rounds,
        "slot_success": taken / (taken + refused) if taken + refused else None,
        "fairness": jain_index(throughputs),
        "accuracy": statistics.fmean(accuracies) if accuracies else None,
    }


def _into_servers(phase: AggregationPhase, found: PhaseResult) -> Tally:
    if phase.exchange != "server":
        return Tally()
    return sum((gradients_to(found.network.counts, phase.shared.topology, job.server) for job in phase.jobs), Tally())


def jain_index(values: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 if all values are equal, 1/n if one has everything.

    Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.
    """
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def job_rows(phase: AggregationPhase, found: PhaseResult) -> Iterable[dict[str, Any]]:
    """Yield a row for each job of a phase."""
    scale = phase.scale
    if not phase.rounds[0]:
        return
    for place, (job, config) in enumerate(zip(phase.jobs, phase.configs, strict=True)):
        emulated_s = _after_warm_up([report.seconds for report in phase.rounds[place]])
        round_time_s = scale.nominal_time(statistics.median(emulated_s))
        gradient_bits = 8 * config.fragments_per_round * frame_bytes(config.lanes)
        bound_bps, packet_bound_bps = _bounds_bps(phase, place)
        yield {
            "job": place + 1,
            "server": job.server,
            "round_time_s": round_time_s,
            "mean_round_time_s": scale.nominal_time(statistics.fmean(emulated_s)),
            "synchronous_round_time_s": scale.nominal_time(
                statistics.median(_after_warm_up([report.whole_seconds for report in phase.rounds[place]]))
            ),
            "throughput_bps": gradient_bits / round_time_s,
            "wire_throughput_bps": None
            if phase.shared.raw_frames.intersection(job.workers)
            else _wire_bits(phase, job, config, found) / round_time_s,
            "bound_bps": None if bound_bps is None else scale.nominal_rate(bound_bps),
            "packet_bound_bps": None if packet_bound_bps is None else scale.nominal_rate(packet_bound_bps),
            "gradient_bytes": gradient_bits // 8,
            **_sent_again(job, config, found),
        }


def _after_warm_up(rounds: Sequence[float]) -> Sequence[float]:
    return rounds[WARM_UP_ROUNDS:] or rounds


def _workers(job: AggregationJobSetup, config: AggregationJob, found: PhaseResult) -> list[Mapping[str, Any]]:
    """Return the final statistics of a job's workers, without those that were stopped once their part was done."""
    names = (f"worker {index}" for index in range(len(job.workers)))
    return [found.agents.final[config.job, name] for name in names if (config.job, name) in found.agents.final]


def _sent_again(job: AggregationJobSetup, config: AggregationJob, found: PhaseResult) -> dict[str, int | None]:
    """Return the resends of all workers together; None where a killed worker took its counts along."""
    workers = _workers(job, config, found)
    if len(workers) < len(job.workers):
        return {"resends": None, "direct_copies": None}
    return {
        "resends": sum(worker["timeout_resends"] + worker["early_resends"] for worker in workers),
        "direct_copies": sum(worker.get("direct_copies", 0) for worker in workers),
    }


def _wire_bits(
    phase: AggregationPhase, job: AggregationJobSetup, config: AggregationJob, found: PhaseResult
) -> float:
    """Return the bits that a worker put on the wire per round, without resends; of the worker with the fewest.

    Switches count a worker's gradients. They do not know ring packets, and those of a fabric program none of these:
    there the link's counts are taken, less the ACKs.
    """
    by_link = phase.by_links
    frame = frame_bytes(config.lanes)
    counted: list[int] = []
    for host, worker in zip(job.workers, _workers(job, config, found), strict=True):
        again = sum(worker.get(name, 0) for name in ("timeout_resends", "early_resends", "direct_copies"))
        received = account(
            found.network.counts, phase.shared.topology, host, worker, by_link=by_link
        ).switch_received.bytes
        acknowledged = worker["acknowledgement_sent"]["bytes"] if by_link else 0
        counted.append(8 * (received - acknowledged - again * frame))
    return min(counted) / len(phase.rounds[phase.jobs.index(job)])


def _bounds_bps(phase: AggregationPhase, place: int) -> Bounds:
    """Return the bounds of a job; they are computed once, since one takes seconds for a thousand hosts."""
    if place not in phase.bounds_bps:
        phase.bounds_bps[place] = _solved_bounds_bps(phase, phase.jobs[place], phase.configs[place])
    return phase.bounds_bps[place]


def _solved_bounds_bps(phase: AggregationPhase, job: AggregationJobSetup, config: AggregationJob) -> Bounds:
    """Return the upper bounds of a job alone, in emulated bit/s.

    The first is that of the linear program with the chosen switches (claims 3 and 4 of the source,
    docs/aggregation.md), the second what packets can reach with the job's labels while global sums are returned. Both
    are None without a server, or where a link has no rate.
    """
    topology, switches = phase.shared.topology, phase.shared.configuration.switches
    if phase.exchange != "server" or any(link.model.rate_bps is None for link in topology.links):
        return None, None
    capacity_bps = phase.scale.rate_bps(switches.capacity_mbps)
    problem = AggregationProblem(topology, phase.shared.routes, tuple(job.workers), job.server, capacity_bps)
    labels = dict(zip(job.workers, config.designations or [()] * len(job.workers), strict=True))
    packets_bps = achievable_rates(problem, labels, returned_sums=True).gamma_bps
    if phase.name == PARAMETER_SERVER:
        return stored_rates(problem, (), server_tor=False).gamma_bps, packets_bps
    chosen = [name for name in phase.shared.summing if name != problem.server_tor]
    return stored_rates(problem, chosen).gamma_bps, packets_bps


def round_rows(phase: AggregationPhase) -> Iterable[Row]:
    """Yield a row for each round of each job."""
    for place, (job, rounds) in enumerate(zip(phase.jobs, phase.rounds, strict=True)):
        for number, report in enumerate(rounds):
            yield {
                "phase": phase.name,
                "job": place + 1,
                "round": number,
                "round_time_s": phase.scale.nominal_time(report.seconds),
                "synchronous_round_time_s": phase.scale.nominal_time(report.whole_seconds),
                **({"accuracy": job.accuracies[number]} if job.accuracies else {}),
                **({"loss": statistics.fmean(report.losses)} if report.losses else {}),
                "clipped": report.clipped,
                **({"result_sha256": job.digests[number]} if job.digests else {}),
            }


def summary_rows(phase: AggregationPhase, found: PhaseResult) -> Iterable[Row]:
    """Yield a row for each job of a phase, with the packets of each event in the switches' slots."""
    for place, (job, config) in enumerate(zip(phase.jobs, phase.configs, strict=True)):
        if not phase.rounds[place]:
            continue
        served = phase.exchange == "server"
        into = gradients_to(found.network.counts, phase.shared.topology, job.server) if served else Tally()
        out = acks_from(found.network.counts, phase.shared.topology, job.server) if served else Tally()
        times_s = [phase.scale.nominal_time(report.seconds) for report in phase.rounds[place]]
        events = events_of(found.network.counts, config.job)
        _, packet_bound_bps = _bounds_bps(phase, place)
        bits = 8 * config.fragments_per_round * frame_bytes(config.lanes)
        least_bps = None if packet_bound_bps is None else phase.scale.nominal_rate(packet_bound_bps)
        yield {
            "phase": phase.name,
            "job": place + 1,
            "workers": len(job.workers),
            "rounds": len(phase.rounds[place]),
            "values": config.values,
            "gradient_bytes": bits // 8,
            "has_server": served,
            "server_in_gradient_packets": into.packets,
            "server_in_gradient_bytes": into.bytes,
            "server_out_acknowledgement_packets": out.packets,
            "server_out_acknowledgement_bytes": out.bytes,
            "median_round_time_s": statistics.median(times_s),
            "least_round_time_s": bits / least_bps if least_bps else None,
            **_sent_again(job, config, found),
            "accuracy": job.accuracies[-1] if job.accuracies else None,
            "byte_hops": found.network.counts.byte_hops,
            **{f"slots_{name}": events.get(name, 0) for name in EVENTS},
        }
