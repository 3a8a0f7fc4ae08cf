"""Metrics and table rows of an NDN trial, and what its exchange takes by the graph."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import networkx

from gradbed.controller.planning.multicast import multicast_tree
from gradbed.experiments.conservation.counts import Counts, Tally
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.ndn.configuration import ALL_REDUCE
from gradbed.experiments.systems.ndn.phase import NdnPhase
from gradbed.experiments.tables.files import Row
from gradbed.experiments.tables.metric import Metric
from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import ETHER_TYPE, HOP_LIMIT
from gradbed.formats.packet_class import PacketClass, ether_type
from gradbed.hosts.collectives.recursive_doubling import partners
from gradbed.hosts.learning.fragments import fragment_count
from gradbed.hosts.learning.workload import gradient_values
from gradbed.topo.graph import Topology

# ---- Packet classes ----


def _packet(name: str, kind: int, *becomes: str) -> PacketClass:
    words = ((ETHERNET_BYTES, 0xFF00, kind << 8), ether_type(ETHER_TYPE))
    return PacketClass(name, words, frozenset(becomes))


CLASSES = (
    # A router that holds the Data answers the Interest, one that had it before, or has no way, sends a Nack.
    _packet("Interest", tlv.INTEREST, "Data", "LpPacket"),
    _packet("Data", tlv.DATA),
    _packet("LpPacket", tlv.LP_PACKET, "Interest", "Data"),
)


# ---- Counters ----


KINDS = ("interest", "insertion", "deletion", "data", "push", "acknowledgement", "nack")
_CELLS_A_PORT = 8

DROP_REASONS = (
    "unknown_type", "not_shortest", "truncated", "no_name", "nested_length", "component_too_long",
    "too_many_components", "operation_name", "bad_element", "port_beyond_16", "hop_limit", "no_route", "duplicate",
    "aggregated", "unsolicited", "no_group", "not_upstream", "overtaken", "link_header", "not_ours",
)  # fmt: skip
"""Reasons for which routers drop packets, each with a counter dropped_REASON.

The first nine are malformed packets.
"""

ROUTER_COUNTERS = (
    "subscriptions_made", "subscriptions_ended", "subscription_collisions", "pending_made", "pending_repeated",
    "pending_satisfied", "pending_evicted", "content_misses", "content_kept", "content_evicted", "content_collisions",
)  # fmt: skip


def entering(counts: Counts, topology: Topology, kind: str) -> dict[str, Tally]:
    """Return the packets of a kind that came from each host to its router."""
    return {host.name: _at(counts, topology, host.name, "ndn_in", kind) for host in topology.hosts}


def _at(counts: Counts, topology: Topology, host: str, counter: str, kind: str) -> Tally:
    switch = topology.attachment(host).name
    return counts.cell(switch, counter, topology.port(switch, host) * _CELLS_A_PORT + KINDS.index(kind))


def transmissions(counts: Counts, topology: Topology, kind: str) -> Tally:
    """Return the packets of a kind over all links: those that came from hosts, and those that routers sent."""
    place = KINDS.index(kind)
    left = (
        tally
        for switch in topology.switches
        for cell, tally in counts.counters.get(switch.name, {}).get("ndn_out", {}).items()
        if cell % _CELLS_A_PORT == place
    )
    return sum((*left, *entering(counts, topology, kind).values()), Tally())


def router_count(counts: Counts, router: str, name: str) -> int:
    """Return the packets of a router's counter."""
    return counts.cell(router, name, 0).packets


def router_packets(counts: Counts, router: str, way: str, kind: str) -> int:
    """Return the packets of a kind that came to a router ("in") or left it ("out"), over all ports."""
    place = KINDS.index(kind)
    cells = counts.counters.get(router, {}).get(f"ndn_{way}", {})
    return sum(tally.packets for cell, tally in cells.items() if cell % _CELLS_A_PORT == place)


def departures(counts: Counts, router: str, port: int) -> int:
    """Return the packets of all kinds that left by a port."""
    return sum(counts.cell(router, "ndn_out", port * _CELLS_A_PORT + place).packets for place in range(len(KINDS)))


def hits(counts: Counts, router: str) -> dict[int, int]:
    """Return the Interests that a router's content store answered, by their remaining hop limit."""
    cells = counts.counters.get(router, {}).get("content_hits", {})
    return {hops_left: tally.packets for hops_left, tally in cells.items()}


def hits_by_distance(counts: Counts, topology: Topology) -> dict[int, int]:
    """Return the Interests answered from content stores, by the number of links between consumer and router."""
    found: dict[int, int] = {}
    for switch in topology.switches:
        for hops_left, packets in hits(counts, switch.name).items():
            distance = HOP_LIMIT - hops_left
            found[distance] = found.get(distance, 0) + packets
    return dict(sorted(found.items()))


def drops(counts: Counts, topology: Topology) -> dict[str, int]:
    """Return the packets dropped by all routers together, for each reason that occurred."""
    total = {
        reason: sum(router_count(counts, switch.name, f"dropped_{reason}") for switch in topology.switches)
        for reason in DROP_REASONS
    }
    return {reason: count for reason, count in total.items() if count}


# ---- What an exchange takes, by the graph ----


class ExchangeCost:
    """Cost of a phase's exchange by the graph, once the service has answered."""

    def __init__(self, phase: NdnPhase) -> None:
        self._phase = phase
        self._exchange = phase.configuration.workload.exchange
        self._graph = phase.topology.graph

    @cached_property
    def sum_of_distances(self) -> int:
        """Sum of distances over all ordered pairs of peers, in links."""
        peers = self._phase.job.peers
        found = 0
        for peer in peers:
            distances = networkx.single_source_shortest_path_length(self._graph, peer)
            found += sum(distances[other] for other in peers)
        return found

    @property
    def transmissions(self) -> int:
        """Links crossed for a fragment of every peer.

        They are the links of all publishers' trees; with unicast there is a copy for each pair.
        """
        if self._exchange == "unicast":
            return self.sum_of_distances
        return sum(self._phase.answer["tree_edges"])

    def links_of_a_fragment(self, index: int) -> float:
        """Return the links that a frame of a peer crosses.

        They are those of its tree or, with unicast copies, the mean distance to another peer.
        """
        if self._exchange != "unicast":
            return int(self._phase.answer["tree_edges"][index])
        peers = self._phase.job.peers
        distances = networkx.single_source_shortest_path_length(self._graph, peers[index])
        return float(sum(distances[other] for other in peers)) / (len(peers) - 1)

    @property
    def fragments(self) -> int:
        """Fragments of a gradient."""
        return fragment_count(gradient_values(self._phase.job.settings), self._phase.configuration.workload.lanes)

    @cached_property
    def spanning_edges(self) -> int:
        """Edges of a tree that spans the peers, from the first one."""
        first, *others = self._phase.job.peers
        return 1 + len(multicast_tree(self._phase.topology, first, others, ()).edges())

    @property
    def _doubling_hops(self) -> float:
        """Sum over all vectors that peers send of the links on their path."""
        peers = self._phase.job.peers
        found = 0
        for rank, peer in enumerate(peers):
            distances = networkx.single_source_shortest_path_length(self._graph, peer)
            found += sum(distances[peers[each.peer]] for each in partners(len(peers), rank) if each.sends)
        return found

    @property
    def hops(self) -> float:
        """Bytes times hops of a round over gradient bytes, without headers and Interests.

        They are those of trees or distances; of the ring's 2 (n - 1) / n gradients over each of the tree's links in
        both directions; or of the vectors that recursive doubling sends.
        """
        if self._exchange == "recursive-doubling":
            return self._doubling_hops
        if self._exchange == "ring":
            peers = len(self._phase.job.peers)
            return 4 * (peers - 1) / peers * self.spanning_edges
        return self.transmissions


# ---- Metrics. Times are nominal ----


SHARE = (0.0, 1.0)
SUBSCRIPTION_NAMES = "NdnIngress.persistent_pit.subscription_name"
"""Register of the routers with the name of each subscription; a row that was never used is 0."""

METRICS = {
    "versions": Metric("", "versions that every peer has completed"),
    "round_time_s": Metric("s", "round time of the slowest peer, from its own start, median", "time"),
    "byte_hops": Metric("B", "bytes times hops, per round"),
    "gradient_hops": Metric("", "bytes times hops of a round / gradient bytes"),
    "transmissions": Metric("", "link crossings of Data per set of one fragment of every peer"),
    "expected_transmissions": Metric("", "expected link crossings: links of the trees, or distances with unicast"),
    "unicast_transmissions": Metric("", "expected link crossings with a unicast copy to each peer"),
    "expected_hops": Metric("", "expected bytes times hops / gradient bytes, without headers"),
    "summed_hops": Metric("", "expected bytes times hops / gradient bytes with aggregation in every switch"),
    "interest_packets": Metric("", "link crossings of Interests, per round"),
    "probes": Metric("", "probes sent by peers, per round"),
    "recoveries": Metric("", "fragments recovered by probes, per round"),
    "store_share": Metric("", "fraction of answered probes that a content store answered", possible=SHARE),
    "recovery_time_s": Metric("s", "recovery time from the first probe to the fragment, mean", "time"),
    "publisher_answers": Metric("", "probes answered by publishers, per round"),
    "subscription_rows": Metric("", "rows used in the fullest persistent PIT"),
    "contents_held": Metric("", "Data in the fullest content store"),
    "applied": Metric("", "gradients of other peers applied per version, mean"),
    "superseded": Metric("", "gradients superseded by a newer one of the same publisher, per round"),
    "staleness": Metric("", "staleness of applied gradients in versions, mean", possible=(None, None)),
    "accuracy": Metric("", "test accuracy", possible=SHARE),
    "total_time_s": Metric("s", "training time, until the last peer has finished", "time"),
}


def metrics(phase: NdnPhase, found: PhaseResult) -> dict[str, Any]:
    """Return the metrics of a trial."""
    counts, topology, job = found.network.counts, phase.topology, phase.job
    peers = [report for name, report in phase.peers.items() if name not in phase.killed]
    rounds = max(1, max(len(report.versions) for report in peers))
    expected = ExchangeCost(phase)
    fragments = expected.fragments
    nominal = phase.task.scale.nominal_time
    agents = list(found.agents.final.values())

    def total(name: str) -> int:
        return sum(agent.get(name, 0) for agent in agents)

    waits_us = [wait for agent in agents for wait in agent.get("recovery_us", ())]
    hits = sum(hits_by_distance(counts, topology).values())
    answers = total("answered_at_once") + total("answered_later")
    gradient_bytes = 4 * gradient_values(job.settings)
    accuracies = [version["accuracy"] for report in peers for version in report.versions if "accuracy" in version]
    times_s = [row["round_time_s"] for row in version_rows(phase)]
    sent = transmissions(counts, topology, "push") + transmissions(counts, topology, "data")
    asynchronous = phase.configuration.workload.mode == "asynchronous"
    named = phase.configuration.workload.exchange not in ALL_REDUCE
    return {
        "versions": min(len(report.versions) for report in peers),
        "round_time_s": statistics.median(times_s) if times_s else None,
        "byte_hops": counts.byte_hops / rounds,
        "gradient_hops": counts.byte_hops / rounds / gradient_bytes,
        "transmissions": sent.packets / (rounds * fragments) if named else None,
        "expected_transmissions": expected.transmissions if named else None,
        "unicast_transmissions": expected.sum_of_distances,
        "expected_hops": expected.hops,
        "summed_hops": 2 * expected.spanning_edges,
        "interest_packets": transmissions(counts, topology, "interest").packets / rounds,
        "probes": total("probes") / rounds,
        "recoveries": len(waits_us) / rounds,
        "store_share": hits / (hits + answers) if hits + answers else None,
        "recovery_time_s": nominal(statistics.fmean(waits_us) / 1e6) if waits_us else None,
        "publisher_answers": answers / rounds,
        "subscription_rows": max(row["subscription_rows"] for row in router_rows(phase, found)),
        "contents_held": max(row["contents_held"] for row in router_rows(phase, found)),
        "applied": len(staleness(phase)) / max(1, sum(len(report.versions) for report in peers))
        if asynchronous
        else None,
        "superseded": total("superseded_versions") / rounds if asynchronous else None,
        "staleness": _mean(staleness(phase)),
        "accuracy": accuracies[-1] if accuracies else None,
        "total_time_s": total_time_s(phase),
    }


def _mean(values: list[int]) -> float | None:
    return statistics.fmean(values) if values else None


def total_time_s(phase: NdnPhase) -> float | None:
    """Return the nominal time from the first event's beginning to the last event; None if there was none."""
    versions = [version for report in phase.peers.values() for version in report.versions if "now_us" in version]
    if not versions:
        return None
    begin_us = min(version["now_us"] - 1e6 * version["total_seconds"] for version in versions)
    return phase.task.scale.nominal_time((max(version["now_us"] for version in versions) - begin_us) / 1e6)


def staleness(phase: NdnPhase) -> list[int]:
    """Return, of every applied gradient of another peer, by how many versions it was behind."""
    return [
        version["version"] - number
        for index, report in enumerate(phase.peers.values())
        for version in report.versions
        for publisher, number in version.get("applied", ())
        if publisher != index
    ]


def version_rows(phase: NdnPhase) -> list[dict[str, Any]]:
    """Return a row for each version, with the slowest peer's time; asynchronous peers do not wait for each other."""
    nominal = phase.task.scale.nominal_time
    by_version: dict[int, list[Mapping[str, Any]]] = {}
    for report in phase.peers.values():
        for version in report.versions:
            by_version.setdefault(version["version"], []).append(version)
    rows = []
    for number, events in sorted(by_version.items()):
        accuracies = [event["accuracy"] for event in events if "accuracy" in event]
        losses = [event["loss"] for event in events if "loss" in event]
        rows.append(
            {
                "version": number,
                "peers": len(events),
                "round_time_s": nominal(max(event["seconds"] for event in events)),
                **({"loss": statistics.fmean(losses)} if losses else {}),
                **({"accuracy": accuracies[0]} if accuracies else {}),
            }
        )
    return rows


def peer_rows(phase: NdnPhase) -> Iterable[Row]:
    """Yield a row for each version of each peer, with its time since training began."""
    nominal = phase.task.scale.nominal_time
    timed = [(name, v) for name, report in phase.peers.items() for v in report.versions if "now_us" in v]
    begin_us = min((v["now_us"] - 1e6 * v["total_seconds"] for _, v in timed), default=0)
    for name, version in timed:
        behind = [version["version"] - number for who, number in version.get("applied", ()) if f"peer {who}" != name]
        yield {
            "peer": name,
            "version": version["version"],
            "at_s": nominal((version["now_us"] - begin_us) / 1e6),
            "loss": version.get("loss"),
            "accuracy": version.get("accuracy"),
            "applied": len(behind),
            "staleness": _mean(behind),
        }


def router_rows(phase: NdnPhase, found: PhaseResult) -> list[dict[str, Any]]:
    """Return a row for each router with what it counted."""
    rows = []
    for switch in phase.topology.switches:
        counted = {name: router_count(found.network.counts, switch.name, name) for name in ROUTER_COUNTERS}
        rows.append(
            {
                "router": switch.name,
                "tier": switch.tier,
                **counted,
                "subscription_rows": len(found.network.registers.get((switch.name, SUBSCRIPTION_NAMES), ())),
                "contents_held": counted["content_kept"] - counted["content_evicted"],
            }
        )
    return rows


def recovery_rows(phase: NdnPhase, found: PhaseResult) -> Iterable[Row]:
    """Yield the answers to probes by the number of links between consumer and router.

    A publisher's answers have no distance.
    """
    for distance, packets in hits_by_distance(found.network.counts, phase.topology).items():
        yield {"served_by": "store", "distance": distance, "packets": packets}
    answers = sum(
        agent.get("answered_at_once", 0) + agent.get("answered_later", 0) for agent in found.agents.final.values()
    )
    yield {"served_by": "publisher", "distance": None, "packets": answers}


def drop_rows(phase: NdnPhase, found: PhaseResult) -> Iterable[Row]:
    """Yield the packets that routers dropped, for each reason."""
    for reason, packets in drops(found.network.counts, phase.topology).items():
        yield {"reason": reason, "packets": packets}
