"""Check an NDN run beyond its sums and weights: what routers counted, against the graph, hosts' numbers and links'
counts.

Nothing here is computed by the code that it checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import networkx

from gradbed.experiments.configuration.faults import restarted_switches
from gradbed.experiments.conservation.counts import Tally
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.ndn.configuration import ALL_REDUCE
from gradbed.experiments.systems.ndn.metrics import (
    DROP_REASONS,
    ExchangeCost,
    departures,
    entering,
    hits,
    router_count,
    router_packets,
    total_time_s,
    transmissions,
)
from gradbed.experiments.systems.ndn.phase import NdnPhase
from gradbed.formats.ndn import HOP_LIMIT

EARLY_PROBES = 10
"""Fragments of a publisher that may be asked for while they wait for its link."""


def undisturbed(phase: NdnPhase, found: PhaseResult) -> bool:
    """Return whether the phase had no faults, and links neither lost, duplicated nor dropped a packet."""
    return not phase.configuration.faults and all(
        effect.lost_packets == effect.duplicates.packets == 0 for effect in found.network.counts.effects.values()
    )


def wrong_transmissions(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report a wrong number of links crossed by pushes or Data.

    A pushed fragment crosses each link of its publisher's tree once, a unicast copy each link of a shortest path, and
    so does a fragment that all ask for, if routers keep it for late consumers. Where packets get lost these are upper
    bounds.
    """
    configuration = phase.configuration
    if phase.name in ALL_REDUCE or configuration.faults or configuration.topology.link.duplicate:
        return
    expected = ExchangeCost(phase)
    exact = undisturbed(phase, found)
    peers = {
        index: found.agents.final[key]
        for key in found.agents.final
        if (index := phase.index(key[1])) is not None and "pushed" in found.agents.final[key]
    }
    pushed = transmissions(found.network.counts, phase.topology, "push").packets
    data = transmissions(found.network.counts, phase.topology, "data").packets
    asked = transmissions(found.network.counts, phase.topology, "interest").packets
    most = sum(round(peer["pushed"] * expected.links_of_a_fragment(index)) for index, peer in peers.items())
    if pushed > most or (exact and not configuration.workload.observers and pushed < most):
        yield f"pushes crossed {pushed} links, {most} are those of their publishers' trees"
    if data > asked:
        yield f"{data} answers crossed links, {asked} Interests did"
    if exact and phase.name == "pull":
        fragments = expected.fragments * min(len(report.versions) for report in phase.peers.values())
        wanted = fragments * expected.transmissions
        repeated = sum(peer["probes"] for peer in peers.values()) - fragments * len(peers) * (len(peers) - 1)
        if data < wanted:
            yield f"fragments crossed {data} links, {wanted} are those of their publishers' trees"
        most = wanted if _stores_keep_all(phase, found) else fragments * expected.sum_of_distances
        if repeated == 0 and data > most:
            yield f"fragments crossed {data} links, {most} are enough"


def _stores_keep_all(phase: NdnPhase, found: PhaseResult) -> bool:
    """Return whether content stores keep all Data.

    Otherwise a late consumer is answered by a more distant router, or by the publisher.
    """
    return phase.configuration.routers.contents > 0 and not any(
        router_count(found.network.counts, switch.name, "content_evicted") for switch in phase.topology.switches
    )


def wrong_hops(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report content-store answers to consumers at distances that the graph does not have."""
    consumers = (*phase.job.publishers, *phase.job.observers)
    distances: dict[str, set[int]] = {}
    for consumer in consumers:
        for node, distance in networkx.single_source_shortest_path_length(phase.topology.graph, consumer).items():
            distances.setdefault(node, set()).add(distance)
    if any(fault.fault in ("link-down", "link-up") for fault in phase.configuration.faults):
        return  # ways around are longer
    for switch in phase.topology.switches:
        for hops_left, packets in hits(found.network.counts, switch.name).items():
            if packets and HOP_LIMIT - hops_left not in distances[switch.name]:
                yield f"{switch.name} answered {packets} Interests from {HOP_LIMIT - hops_left} links away"


def wrong_links(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report links that delivered another number of packets than routers sent, losses and duplicates considered."""
    if phase.name in ALL_REDUCE:
        return  # whose packets are not NDN's
    restarted = restarted_switches(phase.configuration.faults)
    for switch in phase.topology.switches:
        if switch.name in restarted:
            continue
        for neighbour, port in phase.topology.neighbours(switch.name).items():
            effect = found.network.counts.effect(switch.name, neighbour)
            # Bytes are counted of packets as they came in, which are longer or shorter where routers answer.
            sent = departures(found.network.counts, switch.name, port)
            brought = found.network.counts.delivered.get((switch.name, neighbour), Tally()).packets
            if brought != sent + effect.change.packets - effect.socket_drops:
                yield f"{switch.name} sent {neighbour} {sent} packets, the link brought {brought}"


def wrong_answers(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report routers whose Interests do not add up.

    Each Interest that comes to a router is looked up once, and is answered, forwarded or dropped.
    """
    if phase.name in ALL_REDUCE or phase.job.outside:
        return
    restarted = restarted_switches(phase.configuration.faults)
    for switch in phase.topology.switches:
        if switch.name in restarted or any(
            effect.queue_drops.packets
            for (sender, _), effect in found.network.counts.effects.items()
            if sender == switch.name
        ):
            continue  # in front of the counter of what left
        came, left = (router_packets(found.network.counts, switch.name, way, "interest") for way in ("in", "out"))
        hit = sum(hits(found.network.counts, switch.name).values())
        missed = router_count(found.network.counts, switch.name, "content_misses")
        dropped = sum(router_count(found.network.counts, switch.name, f"dropped_{reason}") for reason in DROP_REASONS)
        if phase.configuration.routers.contents and not came - dropped <= hit + missed <= came:
            yield f"{switch.name} looked {hit} Interests up with success and {missed} without, {came} came"
        if not left + hit <= came <= left + hit + dropped:
            yield (
                f"{switch.name} got {came} Interests, answered {hit} from its store, sent {left} on and dropped "
                f"{dropped} packets"
            )
        begun = sum(router_count(found.network.counts, switch.name, f"pending_{how}") for how in ("made", "repeated"))
        # These may be pending as well.
        others = sum(
            router_packets(found.network.counts, switch.name, "out", kind) for kind in ("insertion", "deletion")
        )
        if not left <= begun <= left + others + dropped:
            yield f"{switch.name} sent {left} Interests on, {begun} of them were new to its PIT or due again"


def wrong_tables(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report content stores and PITs whose counters contradict each other.

    A store keeps Data that came, holds what it has not evicted, and that fits into it. A pending Interest is
    satisfied or evicted at most once.
    """
    if phase.name in ALL_REDUCE:
        return
    restarted = restarted_switches(phase.configuration.faults)
    for switch in phase.topology.switches:
        if switch.name in restarted:
            continue
        kinds = ("data", "push", "acknowledgement")
        came = sum(router_packets(found.network.counts, switch.name, "in", kind) for kind in kinds)
        kept, evicted = (
            router_count(found.network.counts, switch.name, f"content_{how}") for how in ("kept", "evicted")
        )
        if kept > came:
            yield f"{switch.name} kept {kept} Data, {came} came"
        if not min(kept, 1) <= kept - evicted <= phase.configuration.routers.contents:
            yield f"{switch.name} kept {kept} Data and evicted {evicted}: it cannot hold {kept - evicted}"
        made, *ends = (
            router_count(found.network.counts, switch.name, f"pending_{how}")
            for how in ("made", "satisfied", "evicted")
        )
        if sum(ends) > made:
            yield f"{switch.name} satisfied {ends[0]} pending Interests and evicted {ends[1]}, of {made}"


def idle_stores(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report publishers that answered more probes than losses and evictions explain.

    A publisher is asked only for what was lost on its own link, or evicted at its router, which has everything else.
    """
    configuration = phase.configuration
    link = configuration.topology.link
    if phase.name != "push" or configuration.faults or link.jitter_us or link.reorder:
        return
    if configuration.timing.compute_us:
        return  # probes for what does not exist yet wait until a publisher has computed it, and are answered at once
    if not configuration.routers.contents:
        return
    answers = any(any(hits(found.network.counts, switch.name).values()) for switch in phase.topology.switches)
    for (_, name), final in found.agents.final.items():
        index = phase.index(name)
        if index is None or "answered_at_once" not in final:
            continue
        host = phase.job.peers[index]
        router = phase.topology.attachment(host).name
        lost = found.network.counts.effect(host, router).lost_packets
        # What is asked for again is kept again: a probe for each content that was evicted, at most.
        evicted = router_count(found.network.counts, router, "content_evicted") if answers else 0
        if final["answered_at_once"] > EARLY_PROBES + 2 * lost + evicted:
            yield (
                f"{host} answered {final['answered_at_once']} probes, though its link lost {lost} packets and "
                f"{router} evicted {evicted}"
            )


def wrong_losses(phase: NdnPhase) -> Iterator[str]:
    """Report training losses that differ from the mean that a single process finds."""
    expected: Mapping[int, float] = phase.job.mean_losses
    for name, report in phase.reports.items():
        for version in report.versions:
            if "mean_loss" in version and version["version"] in expected:
                mean, right = version["mean_loss"], expected[version["version"]]
                if mean != right:
                    yield f"{name}, version {version['version']}: the mean loss is {mean}, the reference's {right}"


def unfinished(phase: NdnPhase) -> Iterator[str]:
    """Report agents that did not reach the last round, or the version at which the reference reaches the target
    loss.
    """
    workload = phase.configuration.workload
    for name, report in phase.reports.items():
        if report.lost:
            yield (
                f"{name} ended after {len(report.versions)} of {workload.rounds} versions: "
                f"{workload.give_up_ms / 1e3:g} s without {', '.join(report.lost)}"
            )
    rounds = phase.job.rounds_until(workload.target_loss)
    for name, report in phase.peers.items():
        if name not in phase.killed and not report.lost and len(report.versions) != rounds is not None:
            yield f"{name} ended after {len(report.versions)} versions, not {rounds}"


def miscounted_pushes(phase: NdnPhase, found: PhaseResult, raw_frames: Collection[str]) -> Iterator[str]:
    """Report routers that counted other numbers of pushes than their hosts sent."""
    if phase.name in ALL_REDUCE or phase.configuration.topology.link.duplicate:
        return
    counted = entering(found.network.counts, phase.topology, "push")
    for (_, name), final in found.agents.final.items():
        if not name.startswith("peer "):
            continue
        host = phase.job.peers[int(name.removeprefix("peer "))]
        switch = phase.topology.attachment(host).name
        effect = found.network.counts.effect(host, switch)
        pushed = final["pushed"]
        least = pushed - effect.lost_packets
        most = pushed + effect.duplicates.packets
        if host not in raw_frames and not least <= counted[host].packets <= most:
            yield f"{host} pushed {pushed} fragments, its router counted {counted[host].packets}"


def subscriptions_left(phase: NdnPhase, found: PhaseResult) -> Iterator[str]:
    """Report rows of a persistent PIT that were not deleted; without faults every subscription is.

    Where insertions are lost, and a run lasts for an epoch, rows may have aged as well, and been made anew.
    """
    if phase.configuration.faults:
        return
    lost = any(each.lost_packets for each in found.network.counts.effects.values())
    epoch_us = 1 << phase.configuration.routers.emulated_epoch_shift(phase.task.scale)
    # Insertions come before the first version, deletions after the last.
    may_age = lost and (total_time_s(phase) or 0.0) > phase.task.scale.nominal_time(epoch_us / 1e6) / 2
    for switch in phase.topology.switches:
        made = router_count(found.network.counts, switch.name, "subscriptions_made")
        ended = router_count(found.network.counts, switch.name, "subscriptions_ended")
        if made < ended or (made > ended and not may_age):
            yield f"{switch.name}: {made} rows of the persistent PIT were made, {ended} deleted"
