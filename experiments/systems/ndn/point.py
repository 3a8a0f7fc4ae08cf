"""One point of the NDN system: its network, its phase, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import networkx

from controller.core.service import NoSettings
from controller.planning.multicast import multicast_tree
from experiments.accounts.accounting import HostAccount, disagreements, rows
from experiments.accounts.host_accounts import host_accounts
from experiments.configuration.faults import restarted_switches
from experiments.fidelity.report import FidelityReport
from experiments.phases import Measured, PointResult
from experiments.programs import Program
from experiments.scale import Scale
from experiments.setup import NetworkSetup, PointTask
from experiments.systems.ndn.checks import unfinished, wrong_hops, wrong_links, wrong_losses, wrong_transmissions
from experiments.systems.ndn.configuration import NdnConfiguration
from experiments.systems.ndn.counts import entering, router_count
from experiments.systems.ndn.jobs import MODULE, job_setup
from experiments.systems.ndn.metrics import (
    SUBSCRIPTION_NAMES,
    drop_rows,
    metrics,
    peer_rows,
    recovery_rows,
    router_rows,
    total_time_s,
    version_rows,
)
from experiments.systems.ndn.phase import NdnPhase
from hosts.learning.fragments import fragment_count
from hosts.learning.workload import gradient_values
from topo.graph import Topology

REPEAT_TICKS, MOST_REPEAT_TICKS = 8, 0x7FFF
"""Of 1,024 us: so long a router holds back an Interest that is repeated."""
MOST_FAILURES = 5
"""Of a kind that a point tells."""


def network_of(configuration: NdnConfiguration, topology: Topology, scale: Scale) -> NetworkSetup:
    """Every switch is a router. topology: on the emulated scale."""
    routers = configuration.routers
    program = Program.own(
        "ndn",
        LANES=configuration.workload.lanes,
        CONTENTS=routers.contents,
        SUBSCRIPTIONS=routers.subscriptions,
        PENDING=routers.pending,
        EPOCH_SHIFT=routers.emulated_epoch_shift(scale),
        REPEAT_TICKS=min(MOST_REPEAT_TICKS, scale.time_us(REPEAT_TICKS)),
    )
    return NetworkSetup(
        topology, {switch.name: program for switch in topology.switches}, NoSettings(), preload=[MODULE]
    )


class NdnPoint:
    """experiments.phases.PointRun."""

    def __init__(self, task: PointTask, configuration: NdnConfiguration) -> None:
        self.task = task
        self.configuration = configuration
        self.topology = configuration.topology.build(task.scale)
        job = job_setup(configuration, self.topology, task.seed)
        self.phase = NdnPhase(job, self.topology, configuration, task)
        self.phases = [self.phase]
        self.network = replace(
            network_of(configuration, self.topology, task.scale),
            capture=job.peers[:1],
            registers=[(switch.name, SUBSCRIPTION_NAMES) for switch in self.topology.switches],
        )

    @cached_property
    def sum_of_distances(self) -> int:
        """Over all ordered pairs of peers, in links."""
        peers = self.phase.job.peers
        found = 0
        for peer in peers:
            distances = networkx.single_source_shortest_path_length(self.topology.graph, peer)
            found += sum(distances[other] for other in peers)
        return found

    @property
    def expected_transmissions(self) -> int:
        """For a fragment of every peer: the links of all publishers' trees; with unicast a copy for each pair."""
        if self.configuration.workload.exchange == "unicast":
            return self.sum_of_distances
        return sum(self.phase.answer["tree_edges"])

    def links_of_a_fragment(self, index: int) -> float:
        """That a frame of a peer's crosses: of its tree, or, with copies, on the way to another peer, mean."""
        if self.configuration.workload.exchange != "unicast":
            return int(self.phase.answer["tree_edges"][index])
        peers = self.phase.job.peers
        distances = networkx.single_source_shortest_path_length(self.topology.graph, peers[index])
        return float(sum(distances[other] for other in peers)) / (len(peers) - 1)

    @property
    def fragments(self) -> int:
        """Of a gradient."""
        return fragment_count(gradient_values(self.phase.job.settings), self.configuration.workload.lanes)

    @cached_property
    def spanning_edges(self) -> int:
        """Of a tree that spans the peers, the first one's."""
        first, *others = self.phase.job.peers
        return 1 + len(multicast_tree(self.topology, first, others, ()).edges())

    @property
    def expected_hops(self) -> float:
        """Bytes times hops of a round by gradient bytes, without headers and Interests: trees, distances, or the
        ring's 2 (n - 1) / n gradients over each of the tree's links in both directions."""
        if self.configuration.workload.exchange == "ring":
            peers = len(self.phase.job.peers)
            return 4 * (peers - 1) / peers * self.spanning_edges
        return self.expected_transmissions

    def result(self, measured: Sequence[Measured]) -> PointResult:
        (found,) = measured
        accounts = self._accounts(found)
        return PointResult(
            metrics=metrics(self, found),
            fidelity=FidelityReport(),
            decisions={
                "peers": list(self.phase.job.peers),
                "observers": list(self.phase.job.observers),
                "observed": {
                    name: [report.versions[0]["version"], report.versions[-1]["version"]] if report.versions else []
                    for name, report in self.phase.observers.items()
                },
                "gave_up": {name: list(each.lost) for name, each in self.phase.reports.items() if each.lost},
                "tree_edges": list(self.phase.answer["tree_edges"]),
                "digests": list(self.phase.job.weights or self.phase.job.sums),
            },
            tables={
                "versions": version_rows(self),
                "peers": list(peer_rows(self)),
                "routers": router_rows(self, found),
                "recoveries": list(recovery_rows(self, found)),
                "drops": list(drop_rows(self, found)),
                "hosts": rows(self.phase.name, 1, accounts),
            },
            failures=[
                *_at_most(list(unfinished(self))),
                *_at_most(self.phase.mismatches),
                *_at_most(self.phase.replay_mismatches()),
                *_at_most(list(wrong_losses(self))),
                *_at_most(disagreements(accounts)),
                *_at_most(list(wrong_transmissions(self, found))),
                *_at_most(list(wrong_hops(self, found))),
                *_at_most(list(wrong_links(self, found))),
                *_at_most(self._miscounted_pushes(found)),
                *_at_most(self._subscriptions_left(found)),
            ],
        )

    @cached_property
    def _uncounted(self) -> frozenset[str]:
        """Hosts without an account: their router was restarted, or their agent was stopped."""
        job, restarted = self.phase.job, restarted_switches(self.configuration.faults)
        agents = {
            **{f"peer {i}": host for i, host in enumerate(job.peers)},
            **{f"observer {i}": host for i, host in enumerate(job.observers)},
        }
        return frozenset(
            host
            for name, host in agents.items()
            if name in self.phase.killed or self.topology.attachment(host).name in restarted
        )

    def _accounts(self, found: Measured) -> list[HostAccount]:
        return [
            each
            for each in host_accounts(self.topology, found.counts, found.final)
            if each.host not in self._uncounted
        ]

    def _miscounted_pushes(self, found: Measured) -> list[str]:
        """Do routers count the pushes that their hosts say they sent?"""
        if self.phase.name == "ring" or self.configuration.topology.link.duplicate:
            return []
        counted = entering(found.counts, self.topology, "push")
        lines = []
        for (_, name), final in found.final.items():
            if not name.startswith("peer "):
                continue
            host = self.phase.job.peers[int(name.removeprefix("peer "))]
            switch = self.topology.attachment(host).name
            lost = found.counts.effect(host, switch)
            most = final["pushed"]
            least = most - lost.losses.packets - lost.queue_drops.packets
            if host not in self._uncounted and not least <= counted[host].packets <= most:
                lines.append(f"{host} pushed {most} fragments, its router counted {counted[host].packets}")
        return lines

    def _subscriptions_left(self, found: Measured) -> list[str]:
        """Without faults everybody deletes what he has subscribed to. Where insertions are lost, and a run lasts for
        an epoch, rows may have aged besides, and been made anew."""
        if self.configuration.faults:
            return []
        lost = any(each.losses.packets or each.queue_drops.packets for each in found.counts.effects.values())
        epoch_us = 1 << self.configuration.routers.emulated_epoch_shift(self.task.scale)
        # Insertions come before the first version, deletions after the last.
        may_age = lost and (total_time_s(self) or 0.0) > self.task.scale.nominal_time(epoch_us / 1e6) / 2
        return [
            f"{switch.name}: {made} rows of the persistent PIT were made, {ended} deleted"
            for switch in self.topology.switches
            if (made := router_count(found.counts, switch.name, "subscriptions_made"))
            < (ended := router_count(found.counts, switch.name, "subscriptions_ended"))
            or (made > ended and not may_age)
        ]


def _at_most(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_FAILURES
    return [*lines[:MOST_FAILURES], *([f"and {more} more"] if more > 0 else [])]
