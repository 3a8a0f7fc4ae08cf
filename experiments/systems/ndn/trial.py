"""One trial of the NDN system: its network, its phase, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradbed.controller.core.service import NoSettings
from gradbed.experiments.conservation.checks import host_accounts, uncounted_hosts
from gradbed.experiments.conservation.counts import disagreements, first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.ndn.checks import (
    idle_stores,
    miscounted_pushes,
    subscriptions_left,
    unfinished,
    wrong_answers,
    wrong_hops,
    wrong_links,
    wrong_losses,
    wrong_tables,
    wrong_transmissions,
)
from gradbed.experiments.systems.ndn.configuration import NdnConfiguration
from gradbed.experiments.systems.ndn.metrics import (
    CLASSES,
    SUBSCRIPTION_NAMES,
    drop_rows,
    metrics,
    peer_rows,
    recovery_rows,
    router_rows,
    version_rows,
)
from gradbed.experiments.systems.ndn.phase import MODULE, NdnPhase, job_setup
from gradbed.topo.graph import Topology

REPEAT_TICKS, MOST_REPEAT_TICKS = 8, 0x7FFF
"""Time for which a router holds back a repeated Interest, in ticks of 1,024 us."""


def network_of(configuration: NdnConfiguration, topology: Topology, scale: Scale) -> NetworkSetup:
    """Return a network in which every switch is a router.

    Args:
        topology: in emulated units.
    """
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
        topology,
        {switch.name: program for switch in topology.switches},
        NoSettings(),
        preload=[MODULE],
        classes=CLASSES,
    )


class NdnTrial(Trial[NdnConfiguration]):
    """Gradients distributed by name."""

    def __init__(self, task: TrialTask[NdnConfiguration]) -> None:
        super().__init__(task)
        job = job_setup(self.configuration, self.topology, task.seed)
        self._phase = NdnPhase(job, self.topology, task)
        self.phases = [self._phase]
        self.network = replace(
            network_of(self.configuration, self.topology, task.scale),
            capture=job.peers[:1],
            registers=[(switch.name, SUBSCRIPTION_NAMES) for switch in self.topology.switches],
        )

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        (found,) = measured
        phase = self._phase
        accounts = host_accounts(self.topology, found.network.counts, found.agents.final)
        raw_frames = uncounted_hosts(self.topology, self.configuration.faults, found.agents.hosts)
        accounts = [each for each in accounts if each.host not in raw_frames]
        return TrialResult(
            metrics=metrics(phase, found),
            decisions={
                "peers": list(phase.job.peers),
                "observers": list(phase.job.observers),
                "observed": {
                    name: [report.versions[0]["version"], report.versions[-1]["version"]] if report.versions else []
                    for name, report in phase.observers.items()
                },
                "gave_up": {name: list(each.lost) for name, each in phase.reports.items() if each.lost},
                "tree_edges": list(phase.answer["tree_edges"]),
                "digests": list(phase.job.weights or phase.job.sums),
            },
            tables={
                "versions": version_rows(phase),
                "peers": list(peer_rows(phase)),
                "routers": router_rows(phase, found),
                "recoveries": list(recovery_rows(phase, found)),
                "drops": list(drop_rows(phase, found)),
                "hosts": rows(phase.name, 1, accounts),
            },
            failures=[
                line
                for kind in (
                    unfinished(phase),
                    phase.mismatches,
                    phase.replay_mismatches(),
                    wrong_losses(phase),
                    disagreements(accounts),
                    wrong_transmissions(phase, found),
                    wrong_hops(phase, found),
                    wrong_answers(phase, found),
                    wrong_tables(phase, found),
                    idle_stores(phase, found),
                    wrong_links(phase, found),
                    miscounted_pushes(phase, found, raw_frames),
                    subscriptions_left(phase, found),
                )
                for line in first_lines(kind)
            ],
        )
