"""Metrics and table rows of a training trial, and what collectives should take; rates and times are nominal."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.training.configuration import CollectiveWorkload
from gradbed.experiments.systems.training.phase import TrainingPhase
from gradbed.experiments.tables.metric import Metric, Value
from gradbed.hosts.agents.queue_pairs import queue_pair_control
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import choose
from gradbed.hosts.systems.training.collectives.costs import (
    ACKNOWLEDGEMENT_BYTES,
    Packetisation,
    cost_ns,
    of_topology,
)
from gradbed.hosts.systems.training.collectives.formulas import hosts_bound_ns, switches_bound_ns

# ---- What collectives should take ----


SELECTIVE_BYTES = 16
"""Additional bytes in acknowledgements of selective repeat and of DCTCP."""


def expected_of_collectives(phase: TrainingPhase) -> dict[str, Value]:
    """Return bound_rate_bps and model_s of the workload's collective.

    Both are None for other workloads and for several jobs; there is no model of collectives that switches carry out.
    """
    workload, nothing = phase.configuration.workload, {"bound_rate_bps": None, "model_s": None}
    if not isinstance(workload, CollectiveWorkload) or len(phase.jobs) > 1 or len(phase.jobs[0]) < 2:
        return dict(nothing)
    operation = Operation(workload.operation)
    (hosts,), topology, scale = phase.jobs, phase.topology, phase.task.scale
    links = [topology.link(host, topology.attachment(host).name).model for host in hosts]
    slowest_bps = min(link.rate_bps for link in links if link.rate_bps)
    bound = switches_bound_ns if phase.switched else hosts_bound_ns
    bound_ns = bound(operation, len(hosts), workload.size_bytes, slowest_bps)
    best = scale.nominal_rate(8e9 * workload.size_bytes / bound_ns) if bound_ns else None
    if phase.switched:
        return {"bound_rate_bps": best, "model_s": None}
    rule = choose(
        operation,
        tuple(range(len(hosts))),
        workload.size_bytes,
        rules=phase.configuration.collectives.rules,
        has_racks=True,
    )
    transport = phase.configuration.transport
    selective = (
        transport.recovery == "selective-repeat" or queue_pair_control(transport.congestion_control).echoes_marks
    )
    packets = Packetisation(
        transport.mtu_bytes,
        transport.acknowledge_every,
        ACKNOWLEDGEMENT_BYTES + (SELECTIVE_BYTES if selective else 0),
    )
    model_ns = cost_ns(
        rule.algorithm,
        operation,
        len(hosts),
        workload.size_bytes,
        of_topology(topology, hosts, packets),
        chunks=rule.chunks,
        root=workload.root,
        racks=tuple(topology.attachment(host).number for host in hosts),
    )
    return {
        "bound_rate_bps": best,
        "model_s": scale.nominal_time(model_ns / 1e9),
    }


# ---- What ranks told, as rows ----


def _first_ns(phase: TrainingPhase) -> int:
    return min(int(report["begin_ns"]) for reports in phase.reports.values() for report in reports.values())


def _seconds(phase: TrainingPhase, nanoseconds: float) -> float:
    return phase.task.scale.nominal_time(nanoseconds / 1e9)


def iteration_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """Yield a row for each iteration of each job, over all its ranks.

    exposed_s is the exposed communication: the time in which ranks did not compute, mean over ranks.
    """
    for job, reports in sorted(phase.reports.items()):
        for iteration in sorted({number for _, number in reports}):
            told = [report for (_, number), report in reports.items() if number == iteration]
            begin_ns, end_ns = min(each["begin_ns"] for each in told), max(each["end_ns"] for each in told)
            computed_ns = statistics.fmean(each["compute_ns"] for each in told)
            yield {
                "phase": phase.name,
                "job": job + 1,
                "iteration": iteration,
                "time_s": _seconds(phase, end_ns - begin_ns),
                "compute_s": _seconds(phase, computed_ns),
                "exposed_s": _seconds(phase, end_ns - begin_ns - computed_ns),
            }


def rank_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """Yield a row for each rank and iteration."""
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        for (rank, iteration), report in sorted(reports.items()):
            yield {
                "phase": phase.name,
                "job": job + 1,
                "rank": rank,
                "host": phase.jobs[job][rank],
                "iteration": iteration,
                "begin_s": _seconds(phase, report["begin_ns"] - first_ns),
                "end_s": _seconds(phase, report["end_ns"] - first_ns),
                "compute_s": _seconds(phase, report["compute_ns"]),
            }


def collective_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """Yield a row for each collective, from the first rank's begin to the last rank's end.

    number counts the collectives of the group; last_begin_s is the time at which the last rank began.
    """
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        spans: defaultdict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = defaultdict(list)
        nodes = {}
        for (rank, _), report in sorted(reports.items()):
            graph = phase.trace.nodes(rank)
            for place, instance, begin_ns, end_ns, _digest in report["collectives"]:
                node = graph[place]
                key = node.group or tuple(range(len(phase.jobs[job]))), instance
                spans[key].append((begin_ns, end_ns))
                nodes[key] = node
        for (group, instance), times in spans.items():
            node = nodes[group, instance]
            begin_ns, end_ns = min(begin for begin, _ in times), max(end for _, end in times)
            yield {
                "phase": phase.name,
                "job": job + 1,
                "operation": node.operation.value if node.operation else "",
                "name": node.name,
                "size_bytes": node.size_bytes,
                "ranks": len(group),
                "first_rank": group[0],
                "number": instance,
                "begin_s": _seconds(phase, begin_ns - first_ns),
                "last_begin_s": _seconds(phase, max(begin for begin, _ in times) - first_ns),
                "end_s": _seconds(phase, end_ns - first_ns),
                "time_s": _seconds(phase, end_ns - begin_ns),
            }


def node_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """Yield a row for each node of the ranks that reported them (--timeline)."""
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        for (rank, iteration), report in sorted(reports.items()):
            graph = phase.trace.nodes(rank) if report["spans"] else ()
            for place, begin_ns, end_ns in report["spans"]:
                node = graph[place]
                yield {
                    "phase": phase.name,
                    "job": job + 1,
                    "rank": rank,
                    "iteration": iteration,
                    "node": node.number,
                    "name": node.name,
                    "kind": node.operation.value if node.operation else node.kind.value,
                    "size_bytes": node.size_bytes,
                    "begin_s": _seconds(phase, begin_ns - first_ns),
                    "end_s": _seconds(phase, end_ns - first_ns),
                }


# ---- Metrics ----


METRICS: Mapping[str, Metric] = {
    "ranks": Metric("", "number of ranks of each job"),
    "iteration_time_s": Metric("s", "iteration time, first rank's begin to last rank's end, median", "time"),
    "longest_iteration_s": Metric("s", "longest iteration time", "time"),
    "compute_time_s": Metric("s", "compute time of a rank per iteration, mean", "time"),
    "exposed_s": Metric("s", "exposed communication per iteration, mean", "time"),
    "collective_time_s": Metric("s", "collective time, first rank's begin to last rank's end, median", "time"),
    "algorithm_rate_bps": Metric("bit/s", "algorithm bandwidth (size / time), median", "rate"),
    "bound_rate_bps": Metric("bit/s", "algorithm bandwidth, upper bound from host link rates", "rate"),
    "model_s": Metric("s", "collective time on an idle network without path collisions, by formula", "time"),
    "messages": Metric("", "messages sent by ranks (total)"),
    "message_bytes": Metric("B", "bytes of messages sent by ranks (total)"),
    "packets": Metric("", "data packets sent by NICs (total)"),
    "packet_hops": Metric("", "packet hops: packets delivered by links (total)"),
    "retransmissions": Metric("", "packets retransmitted by NICs (total)"),
    "timeouts": Metric("", "retransmission timeouts (total)"),
    "marked": Metric("", "packets received with an ECN mark (total)"),
    "cnps": Metric("", "congestion notification packets (total)"),
    "queue_drops": Metric("", "packets dropped by full queues (total)"),
}


def metrics(phase: TrainingPhase, found: PhaseResult) -> dict[str, Value]:
    """Return the metrics of a trial."""
    iterations, collectives = list(iteration_rows(phase)), list(collective_rows(phase))
    rates_bps = [8 * row["size_bytes"] / row["time_s"] for row in collectives if row["time_s"]]

    def total(name: str) -> int:
        return sum(final.get(name, 0) for final in found.agents.final.values())

    return {
        "ranks": len(phase.jobs[0]),
        "iteration_time_s": statistics.median(row["time_s"] for row in iterations),
        "longest_iteration_s": max(row["time_s"] for row in iterations),
        "compute_time_s": statistics.fmean(row["compute_s"] for row in iterations),
        "exposed_s": statistics.fmean(row["exposed_s"] for row in iterations),
        "collective_time_s": statistics.median(row["time_s"] for row in collectives) if collectives else None,
        "algorithm_rate_bps": statistics.median(rates_bps) if rates_bps else None,
        **expected_of_collectives(phase),
        "messages": total("messages"),
        "message_bytes": total("message_bytes"),
        "packets": total("sent_packets"),
        "packet_hops": sum(tally.packets for tally in found.network.counts.delivered.values()),
        "retransmissions": total("retransmissions"),
        "timeouts": total("timeouts"),
        "marked": total("marked"),
        "cnps": total("cnps_sent"),
        "queue_drops": sum(effect.queue_drops.packets for effect in found.network.counts.effects.values()),
    }
