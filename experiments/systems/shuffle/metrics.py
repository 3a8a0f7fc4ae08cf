"""Packet classes and link loads of a shuffle, and its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.shuffle.delivery import transmission_links
from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.systems.shuffle.phase import ShuffleJob
from gradbed.experiments.tables.metric import Metric
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.shuffle import CODED, CODED_PORT, CodedFlags
from gradbed.topo.graph import Direction, Topology, is_hop

# ---- Packet classes ----


_KINDS = CodedFlags.REPAIR | CodedFlags.REQUEST


def _coded(name: str, value: CodedFlags) -> PacketClass:
    return PacketClass(name, (bits_of(CODED, "flags", DATAGRAM_BYTES, _KINDS, value), *udp_datagram(CODED_PORT)))


CLASSES = (
    _coded("scheduled", CodedFlags(0)),
    _coded("repair", CodedFlags.REPAIR),
    _coded("request", CodedFlags.REQUEST),
)


# ---- Loads ----


@dataclass(frozen=True)
class ShuffleLinkLoad:
    """Load of one link direction."""

    transmissions: int = 0
    """Number of transmissions; each is counted once, by its first packet."""
    packets: int = 0
    """Number of packets."""

    def at_most(self, other: ShuffleLinkLoad) -> ShuffleLinkLoad:
        return ShuffleLinkLoad(min(self.transmissions, other.transmissions), min(self.packets, other.packets))


def directions(topology: Topology) -> list[Direction]:
    """Return both directions of every link that is a hop."""
    hops = [link for link in topology.links if is_hop(topology, link)]
    return [pair for link in hops for a, b in [(link.a.node, link.b.node)] for pair in ((a, b), (b, a))]


def planned_ways(job: ShuffleJob) -> Sequence[Collection[Direction]]:
    """Return the link directions that each transmission crosses by the schedule."""
    routes = shortest_routes(job.topology)
    return transmission_links(job.topology, routes, job.instance, job.schedule, job.answer.deliveries)


def planned_loads(job: ShuffleJob) -> dict[Direction, ShuffleLinkLoad]:
    """Return the load of each link direction by the schedule."""
    topology = job.topology
    transmissions: Counter[Direction] = Counter()
    packets: Counter[Direction] = Counter()
    for transmission, links in zip(job.schedule.transmissions, planned_ways(job), strict=True):
        fragments = job.fragments(transmission)
        for direction in links:
            transmissions[direction] += 1
            packets[direction] += fragments
    return {each: ShuffleLinkLoad(transmissions[each], packets[each]) for each in directions(topology)}


def counted_loads(topology: Topology, counts: Counts) -> dict[Direction, ShuffleLinkLoad]:
    """Return the load of each link direction by the counters of the sending switch; for hosts, of the receiving
    one.
    """

    def counted(direction: Direction, kind: str) -> int:
        sender, receiver = direction
        if topology.is_host(sender):
            return counts.cell(receiver, f"{kind}_in", topology.port(receiver, sender)).packets
        return counts.cell(sender, f"{kind}_out", topology.port(sender, receiver)).packets

    return {
        each: ShuffleLinkLoad(counted(each, "transmissions"), counted(each, "scheduled"))
        for each in directions(topology)
    }


def repair_hops(topology: Topology, counts: Counts) -> int:
    """Return the sum of links that repairs took."""
    total = 0
    for sender, receiver in directions(topology):
        if topology.is_host(sender):
            total += counts.cell(receiver, "repairs_in", topology.port(receiver, sender)).packets
        else:
            total += counts.cell(sender, "repairs_out", topology.port(sender, receiver)).packets
    return total


def lossless(counts: Counts) -> bool:
    """Return whether every link delivered every packet exactly once."""
    return not any(each.lost_packets or each.duplicates.packets for each in counts.effects.values())


def disagreements(
    planned: Mapping[Direction, ShuffleLinkLoad],
    counted: Mapping[Direction, ShuffleLinkLoad],
    word: str = "planned are",
) -> list[str]:
    """Return a line for each link direction that did not carry what the schedule says."""
    return [
        f"{a} to {b}: {counted[a, b].transmissions} transmissions in {counted[a, b].packets} packets, {word} "
        f"{load.transmissions} in {load.packets}"
        for (a, b), load in planned.items()
        if counted[a, b] != load
    ]


def load_metrics(topology: Topology, counted: Mapping[Direction, ShuffleLinkLoad]) -> dict[str, float | None]:
    """Return how evenly links are loaded.

    The switches farthest from hosts are a fat-tree's cores, or a leaf-spine's spines.
    """
    height = nx.multi_source_dijkstra_path_length(topology.graph, {host.name for host in topology.hosts})
    top = [switch.name for switch in topology.switches if height[switch.name] == max(height.values())]
    over = [sum(load.packets for (a, _), load in counted.items() if a == switch) for switch in top]
    fabric = [load.packets for ends, load in counted.items() if not any(map(topology.is_host, ends))]
    return {
        "load_max_over_mean": max_over_mean([load.packets for load in counted.values()]),
        "fabric_load_max_over_mean": max_over_mean(fabric),
        "top_switch_share": max(over) / sum(over) if sum(over) else None,
    }


def max_over_mean(values: Sequence[int]) -> float | None:
    """Return the largest value over the mean; None without any load."""
    return max(values) * len(values) / sum(values) if sum(values) else None


# ---- Metrics ----


METRICS: Mapping[str, Metric] = {
    "hops": Metric("", "hops of a shuffle in the schedule (one packet per transmission)"),
    "counted_hops": Metric("", "hops of a shuffle, counted by switches"),
    "bound_hops": Metric("", "lower bound on hops"),
    "packet_bound_hops": Metric("", "packet lower bound on hops, from packets and copies of samples"),
    "cut_bound_hops": Metric(
        "", "cut-set lower bound on hops, from samples that must enter and leave hosts, racks and pods"
    ),
    "hops_per_sample": Metric("", "hops per sample that a worker needs"),
    "samples_per_packet": Metric("", "samples delivered per packet, without loans"),
    "packets_per_sample": Metric("", "packets of a shuffle per sample of the data set"),
    "loans": Metric("", "samples lent by neighbours"),
    "schedule_s": Metric(
        "s", "processor time to compute trees and schedule (only if nothing is sent; varies between runs)"
    ),
    "shuffle_time_s": Metric("s", "shuffle completion time", "time"),
    "max_wait_s": Metric("s", "wait of a packet for a neighbour's sample, maximum", "time"),
    "planned_wait_s": Metric("s", "wait for a neighbour's sample in the schedule, maximum", "time"),
    "mean_wait_s": Metric("s", "wait of class A packets for a neighbour's sample, mean", "time"),
    "repairs": Metric("", "repair packets sent after losses"),
    "coded_repairs": Metric("", "coded repair packets, each for several receivers"),
    "repair_hops": Metric("", "hops of repair packets"),
    "requests": Metric("", "repair requests for lost packets"),
    "byte_hops": Metric("B", "bytes carried by all links (total)"),
    "load_max_over_mean": Metric("", "largest packet count of a link / mean"),
    "fabric_load_max_over_mean": Metric("", "largest packet count of a link between switches / mean"),
    "top_switch_share": Metric(
        "", "share of the busiest top-level switch in all packets sent by these switches", possible=(0.0, 1.0)
    ),
    "accuracy_global": Metric("", "test accuracy after the last epoch, global shuffling", possible=(0.0, 1.0)),
    "accuracy_local": Metric("", "test accuracy after the last epoch, local shuffling", possible=(0.0, 1.0)),
}
