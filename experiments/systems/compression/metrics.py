"""Metrics and table rows of a compression trial; rates and times are nominal."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.compression.phase import CompressionPhase, CompressionRoundReport, background_loss
from gradbed.experiments.tables.files import Row
from gradbed.experiments.tables.metric import Metric

SHARE = (0.0, 1.0)

LONGEST_QUEUE = "CompressionEgress.queue.longest_queue"
"""Register with the longest queue of each port."""

METRICS: Mapping[str, Metric] = {
    "iteration_time_s": Metric("s", "median time from a gradient to the sum", "time"),
    "sending_time_s": Metric("s", "median time until the slowest worker's gradient is acknowledged", "time"),
    "longest_iteration_s": Metric("s", "the longest iteration", "time"),
    "ratio": Metric("", "bytes sent / bytes of the gradients before cutting, mean", possible=SHARE),
    "least_ratio": Metric("", "bytes sent / bytes of the gradient before cutting, minimum", possible=SHARE),
    "server_bytes": Metric("B", "bytes into the server's link, per round"),
    "wire_bytes": Metric("B", "bytes of gradients with headers, per round and worker"),
    "queue_drops": Metric("", "packets dropped by the queue of the server's link (total)"),
    "longest_queue": Metric("", "longest queue that a packet to the server found, packets"),
    "mean_queue": Metric("", "queue of the server's link, mean of samples, packets", on_bmv2=False),
    "marked": Metric("", "marked packets sent to the server (total)"),
    "resends": Metric("", "parts resent by workers (total)"),
    "background_loss": Metric("", "fraction of the competing datagrams lost", possible=SHARE),
    "accuracy": Metric("", "test accuracy", possible=SHARE),
}


def metrics(phase: CompressionPhase, found: PhaseResult) -> dict[str, Any]:
    """Return the metrics of a trial; all are None for a script without a model."""
    rows, topology = list(round_rows(phase)), phase.topology
    if not rows:
        return dict.fromkeys(METRICS)  # a script without a model
    switch = topology.attachment(phase.server).name
    port = topology.port(switch, phase.server)
    into = found.network.counts.delivered.get((switch, phase.server))
    job = found.agents.answers[0]["job"]
    workers = [found.agents.final.get((job, name), {}) for name in phase.names]
    queues = [row["queue_packets"] for row in found.observed.samples.get("link_samples", ())]
    accuracies = [row["accuracy"] for row in rows if row.get("accuracy") is not None]
    return {
        "iteration_time_s": statistics.median(row["iteration_time_s"] for row in rows),
        "sending_time_s": statistics.median(row["sending_time_s"] for row in rows),
        "longest_iteration_s": max(row["iteration_time_s"] for row in rows),
        "ratio": statistics.fmean(row["ratio"] for row in rows),
        "least_ratio": min(row["least_ratio"] for row in rows),
        "server_bytes": (into.bytes if into else 0) / len(rows),
        "wire_bytes": statistics.fmean(row["wire_bytes"] for row in rows),
        "queue_drops": found.network.counts.effect(switch, phase.server).queue_drops.packets,
        "longest_queue": max(
            (row["value"] for row in found.observed.samples.get("register_samples", ()) if row["index"] == port),
            default=0,
        ),
        "mean_queue": statistics.fmean(queues) if queues and None not in queues else None,
        "marked": found.network.counts.cell(switch, "marked", port).packets,
        "resends": sum(each.get("timeout_resends", 0) + each.get("early_resends", 0) for each in workers),
        "background_loss": background_loss(found.agents.final, phase.background_sender or "", phase.server, job),
        "accuracy": accuracies[-1] if accuracies else None,
    }


def round_rows(phase: CompressionPhase) -> Iterable[dict[str, Any]]:
    """Yield a row for each round, over all workers that were there to its end.

    A round without any such worker has none. summed_workers counts the workers of which at least a part is in the
    sum.
    """
    scale = phase.task.scale
    for number, report in enumerate(phase.rounds):
        reported = list(report.exchanged.values())
        if not (reported and report.round):
            continue
        ratios = [each["planned_bytes"] / each["total_bytes"] for each in reported]
        yield {
            "phase": phase.name,
            "round": number,
            "iteration_time_s": scale.nominal_time(max(each["seconds"] for each in report.round.values())),
            "sending_time_s": scale.nominal_time(max(each["sent_seconds"] for each in reported)),
            "ratio": statistics.fmean(ratios),
            "least_ratio": min(ratios),
            "wire_bytes": statistics.fmean(each["planned_bytes"] for each in reported),
            "values": reported[0]["values"],
            "summed_workers": len(report.received),
            **_learning(report),
        }


def _learning(report: CompressionRoundReport) -> dict[str, Any]:
    reported = report.round.values()
    losses = [each["loss"] for each in reported if "loss" in each]
    accuracies = [each["accuracy"] for each in reported if "accuracy" in each]
    return {
        **({"loss": statistics.fmean(losses)} if losses else {}),
        **({"accuracy": accuracies[0]} if accuracies else {}),
        **(
            {"clipped": sum(each["clipped"] for each in reported)}
            if all("clipped" in each for each in reported)
            else {}
        ),
    }


def rate_rows(phase: CompressionPhase) -> Iterable[Row]:
    """Yield a row for each reading of each worker's rate; time_s counts from the first reading of all."""
    readings = [
        (reading["time_us"], number, name, reading, reported["initial_bps"])
        for number, report in enumerate(phase.rounds)
        for name, reported in report.exchanged.items()
        for reading in reported["readings"]
    ]
    scale = phase.task.scale
    start_us = min((each[0] for each in readings), default=0)
    for time_us, number, name, reading, initial_bps in sorted(readings, key=lambda each: each[:3]):
        yield {
            "phase": phase.name,
            "round": number,
            "worker": name,
            "time_s": scale.nominal_time((time_us - start_us) / 1e6),
            "rate_bps": scale.nominal_rate(reading["rate_bps"]),
            "initial_bps": None if initial_bps is None else scale.nominal_rate(initial_bps),
            "settled": reading["settled"],
            "ratio": reading["ratio"],
        }
