"""What a point of training yields. Rates and times are nominal."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from gradbed.experiments.phases import Measured
from gradbed.experiments.systems.training.cost import expected_of_collectives
from gradbed.experiments.systems.training.phase import TrainingPhase
from gradbed.experiments.systems.training.told import collective_rows, iteration_rows
from gradbed.experiments.tables.metric import Metric, Value

METRICS: Mapping[str, Metric] = {
    "ranks": Metric("", "of each job"),
    "iteration_time_s": Metric(
        "s", "an iteration, from the first rank's begin to the last one's end, median", "time"
    ),
    "longest_iteration_s": Metric("s", "the longest of all iterations", "time"),
    "compute_time_s": Metric("s", "what a rank computes in an iteration, mean", "time"),
    "exposed_s": Metric("s", "the rest of an iteration: communication that nothing hides, mean", "time"),
    "collective_time_s": Metric(
        "s", "a collective, from its first rank's begin to its last one's end, median", "time"
    ),
    "algorithm_rate_bps": Metric("bit/s", "size of a collective by its time, median", "rate"),
    "bound_rate_bps": Metric(
        "bit/s", "no collective of this kind is faster, by what hosts' links must carry", "rate"
    ),
    "model_s": Metric("s", "a collective on an idle network whose paths do not collide, by formula", "time"),
    "messages": Metric("", "that ranks sent, in all"),
    "message_bytes": Metric("B", "of these messages, in all"),
    "packets": Metric("", "with parts of messages, that cards sent, in all"),
    "packet_hops": Metric("", "packets that links handed over, in all"),
    "retransmissions": Metric("", "packets that cards sent again, in all"),
    "timeouts": Metric("", "of cards' timers, in all"),
    "marked": Metric("", "packets that came with a congestion mark, in all"),
    "cnps": Metric("", "congestion notification packets, in all"),
    "queue_drops": Metric("", "packets that full queues dropped, in all"),
}


def metrics(phase: TrainingPhase, found: Measured) -> dict[str, Value]:
    iterations, collectives = list(iteration_rows(phase)), list(collective_rows(phase))
    rates_bps = [8 * row["size_bytes"] / row["time_s"] for row in collectives if row["time_s"]]

    def total(name: str) -> int:
        return sum(final.get(name, 0) for final in found.final.values())

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
        "packet_hops": sum(tally.packets for tally in found.counts.delivered.values()),
        "retransmissions": total("retransmissions"),
        "timeouts": total("timeouts"),
        "marked": total("marked"),
        "cnps": total("cnps_sent"),
        "queue_drops": sum(effect.queue_drops.packets for effect in found.counts.effects.values()),
    }
