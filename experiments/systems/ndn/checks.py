"""What must hold of a run besides sums and weights: distances and sums over the graph, hosts' own numbers and links'
counters say what routers must have counted. Nothing here is taken from what it checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import networkx

from experiments.accounts.accounting import Tally
from experiments.configuration.faults import restarted_switches
from experiments.phases import Measured
from experiments.systems.ndn.counts import departures, hits, transmissions
from formats.ndn import HOP_LIMIT

if TYPE_CHECKING:
    from experiments.systems.ndn.point import NdnPoint


def undisturbed(point: NdnPoint, found: Measured) -> bool:
    """Neither faults, nor packets that links lost, doubled or had no room for."""
    return not point.configuration.faults and all(
        effect.losses.packets == effect.duplicates.packets == effect.queue_drops.packets == 0
        for effect in found.counts.effects.values()
    )


def wrong_transmissions(point: NdnPoint, found: Measured) -> Iterator[str]:
    """A pushed fragment crosses each link of its publisher's tree once, a copy each link of a shortest path; and so
    does a fragment that all ask for. Where packets get lost it is at most so many."""
    configuration = point.configuration
    if point.phase.name == "ring" or configuration.faults or configuration.topology.link.duplicate:
        return
    exact = undisturbed(point, found)
    peers = {
        index: found.final[key]
        for key in found.final
        if (index := point.phase.index(key[1])) is not None and "pushed" in found.final[key]
    }
    pushed = transmissions(found.counts, point.topology, "push").packets
    data = transmissions(found.counts, point.topology, "data").packets
    asked = transmissions(found.counts, point.topology, "interest").packets
    most = sum(round(peer["pushed"] * point.links_of_a_fragment(index)) for index, peer in peers.items())
    if pushed > most or (exact and not configuration.workload.observers and pushed < most):
        yield f"pushes crossed {pushed} links, {most} are those of their publishers' trees"
    if data > asked:
        yield f"{data} answers crossed links, {asked} Interests did"
    if exact and point.phase.name == "pull":
        fragments = point.fragments * min(len(report.versions) for report in point.phase.peers.values())
        wanted = fragments * point.expected_transmissions
        repeated = sum(peer["probes"] for peer in peers.values()) - fragments * len(peers) * (len(peers) - 1)
        if data < wanted or (repeated == 0 and data > wanted):
            yield f"fragments crossed {data} links, {wanted} are those of their publishers' trees"


def wrong_hops(point: NdnPoint, found: Measured) -> Iterator[str]:
    """A store answers consumers at distances that the graph has."""
    consumers = (*point.phase.job.publishers, *point.phase.job.observers)
    distances: dict[str, set[int]] = {}
    for consumer in consumers:
        for node, distance in networkx.single_source_shortest_path_length(point.topology.graph, consumer).items():
            distances.setdefault(node, set()).add(distance)
    if any(fault.fault in ("link-down", "link-up") for fault in point.configuration.faults):
        return  # ways around are longer
    for switch in point.topology.switches:
        for hops_left, packets in hits(found.counts, switch.name).items():
            if packets and HOP_LIMIT - hops_left not in distances[switch.name]:
                yield f"{switch.name} answered {packets} Interests from {HOP_LIMIT - hops_left} links away"


def wrong_links(point: NdnPoint, found: Measured) -> Iterator[str]:
    """Links bring what routers say that they sent, but what they lost or doubled."""
    if point.phase.name == "ring":
        return  # whose packets are not NDN's
    restarted = restarted_switches(point.configuration.faults)
    for switch in point.topology.switches:
        if switch.name in restarted:
            continue
        for neighbour, port in point.topology.neighbours(switch.name).items():
            effect = found.counts.effect(switch.name, neighbour)
            # Bytes are counted of packets as they came in, which are longer or shorter where routers answer.
            sent = departures(found.counts, switch.name, port)
            brought = found.counts.delivered.get((switch.name, neighbour), Tally()).packets
            if brought != sent + effect.duplicates.packets - effect.losses.packets:
                yield f"{switch.name} sent {neighbour} {sent} packets, the link brought {brought}"


def wrong_losses(point: NdnPoint) -> Iterator[str]:
    """The loss of training that every peer and observer heard of is the mean of a single process's."""
    expected: Mapping[int, float] = point.phase.job.mean_losses
    for name, report in point.phase.reports.items():
        for version in report.versions:
            if "mean_loss" in version and version["version"] in expected:
                told, right = version["mean_loss"], expected[version["version"]]
                if told != right:
                    yield f"{name}, version {version['version']}: the mean loss is {told}, the reference's {right}"


def unfinished(point: NdnPoint) -> Iterator[str]:
    """Who has not come to the end: all rounds, or the version whose loss the reference finds small enough."""
    workload = point.configuration.workload
    for name, report in point.phase.reports.items():
        if report.lost:
            yield (
                f"{name} ended after {len(report.versions)} of {workload.rounds} versions: "
                f"{workload.give_up_ms / 1e3:g} s without {', '.join(report.lost)}"
            )
    rounds = point.phase.job.rounds_until(workload.target_loss)
    for name, report in point.phase.peers.items():
        if name not in point.phase.killed and not report.lost and len(report.versions) != rounds is not None:
            yield f"{name} ended after {len(report.versions)} versions, not {rounds}"
