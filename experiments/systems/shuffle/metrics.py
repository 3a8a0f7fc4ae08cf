"""The numbers of a shuffle."""

from __future__ import annotations

from collections.abc import Mapping

from gradbed.experiments.tables.metric import Metric

METRICS: Mapping[str, Metric] = {
    "hops": Metric("", "links that the packets of a shuffle take together (a sample of one packet)"),
    "counted_hops": Metric("", "the same as switches counted it"),
    "bound_hops": Metric("", "hops that no schedule can go below"),
    "packet_bound_hops": Metric("", "the bound that follows from packets and copies of samples"),
    "cut_bound_hops": Metric("", "the bound that follows from what must enter and leave hosts, racks and pods"),
    "hops_per_sample": Metric("", "hops for each sample that a worker needs"),
    "samples_per_packet": Metric("", "samples that a coded or uncoded packet brings, loans not counted"),
    "packets_per_sample": Metric("", "packets that a shuffle takes for each sample of the data set"),
    "loans": Metric("", "samples that neighbours lend"),
    "schedule_s": Metric(
        "s", "processor time for trees and schedule, where nothing is sent; differs from run to run"
    ),
    "shuffle_time_s": Metric("s", "until every worker has all that it needs", "time"),
    "max_wait_s": Metric("s", "the longest that a packet waited for a neighbour's", "time"),
    "planned_wait_s": Metric("s", "the longest wait that the schedule has", "time"),
    "mean_wait_s": Metric("s", "that packets of class A waited for a neighbour's", "time"),
    "repairs": Metric("", "packets that were sent because others were lost"),
    "coded_repairs": Metric("", "of them, sums for several receivers"),
    "repair_hops": Metric("", "links that repairs took together"),
    "requests": Metric("", "for lost packets"),
    "byte_hops": Metric("B", "bytes that all links carried together"),
    "load_max_over_mean": Metric("", "of the packets on links, the most over the mean"),
    "fabric_load_max_over_mean": Metric("", "the same of links between switches"),
    "top_switch_share": Metric(
        "", "of the packets that switches farthest from hosts send, those of the busiest one", possible=(0.0, 1.0)
    ),
    "accuracy_global": Metric("", "on the test samples after the last epoch, with shuffles", possible=(0.0, 1.0)),
    "accuracy_local": Metric("", "the same where workers keep their first samples", possible=(0.0, 1.0)),
}
