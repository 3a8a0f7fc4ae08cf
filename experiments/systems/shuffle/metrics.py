"""Metrics of a shuffle."""

from __future__ import annotations

from collections.abc import Mapping

from gradbed.experiments.tables.metric import Metric

METRICS: Mapping[str, Metric] = {
    "hops": Metric("", "hops of all packets of a shuffle (one packet per sample)"),
    "counted_hops": Metric("", "hops of all packets as switches counted them"),
    "bound_hops": Metric("", "lower bound on hops"),
    "packet_bound_hops": Metric("", "packet lower bound on hops: packets and copies of samples"),
    "cut_bound_hops": Metric("", "cut-set lower bound on hops: what must enter and leave hosts, racks and pods"),
    "hops_per_sample": Metric("", "hops per sample that a worker needs"),
    "samples_per_packet": Metric("", "samples delivered per packet, without loans"),
    "packets_per_sample": Metric("", "packets of a shuffle per sample of the data set"),
    "loans": Metric("", "samples that neighbours lend"),
    "schedule_s": Metric(
        "s", "processor time for trees and schedule, where nothing is sent; differs from run to run"
    ),
    "shuffle_time_s": Metric("s", "time until every worker has all samples that it needs", "time"),
    "max_wait_s": Metric("s", "longest wait of a packet for a neighbour's sample", "time"),
    "planned_wait_s": Metric("s", "longest wait for a neighbour's sample in the schedule", "time"),
    "mean_wait_s": Metric("s", "mean wait of class A packets for a neighbour's sample", "time"),
    "repairs": Metric("", "packets sent to repair losses"),
    "coded_repairs": Metric("", "coded repairs, which serve several receivers"),
    "repair_hops": Metric("", "hops of all repairs"),
    "requests": Metric("", "requests for lost packets"),
    "byte_hops": Metric("B", "bytes carried by all links (total)"),
    "load_max_over_mean": Metric("", "largest packet count of a link / mean"),
    "fabric_load_max_over_mean": Metric("", "largest packet count of a link between switches / mean"),
    "top_switch_share": Metric(
        "", "fraction of the top switches' packets that the busiest one sends", possible=(0.0, 1.0)
    ),
    "accuracy_global": Metric("", "test accuracy after the last epoch, with shuffles", possible=(0.0, 1.0)),
    "accuracy_local": Metric(
        "", "test accuracy after the last epoch, if workers keep their first samples", possible=(0.0, 1.0)
    ),
}
