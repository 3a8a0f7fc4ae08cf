"""One point of training: its network, its jobs, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence

from controller.systems.training.service import PROGRAM, TrainingSettings
from experiments.accounts.accounting import disagreements, first_lines, rows
from experiments.accounts.host_accounts import host_accounts, uncounted_hosts
from experiments.phases import Measured, Point, PointResult
from experiments.programs import Program
from experiments.setup import NetworkSetup, PointTask
from experiments.systems.training.checks import wrong_executions, wrong_results, wrong_times
from experiments.systems.training.classes import CLASSES
from experiments.systems.training.configuration import TrainingConfiguration
from experiments.systems.training.metrics import metrics
from experiments.systems.training.perfetto import write_timeline
from experiments.systems.training.phase import AGENT, TrainingPhase
from experiments.systems.training.placed import place_ranks
from experiments.systems.training.told import collective_rows, iteration_rows, node_rows, rank_rows


class TrainingPoint(Point[TrainingConfiguration]):
    """Jobs that train over switches that route."""

    def __init__(self, task: PointTask[TrainingConfiguration]) -> None:
        super().__init__(task)
        configuration = self.configuration
        program = Program.own(PROGRAM)
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            TrainingSettings(
                policy=configuration.switches.balancing,
                seed=task.seed,
                flowlet_us=task.scale.time_us(configuration.switches.flowlet_us),
                marking=configuration.switches.marking(),
            ),
            preload=[AGENT.partition(":")[0]],
            classes=CLASSES,
        )
        ranks = configuration.ranks_of_a_job(len(self.topology.hosts))
        jobs = place_ranks(self.topology, ranks, configuration.ranks, task.seed)
        self._phase = TrainingPhase(jobs, configuration.workload.source(ranks), self.topology, task)
        self.phases = [self._phase]

    def result(self, measured: Sequence[Measured]) -> PointResult:
        phase, (found,) = self._phase, measured
        uncounted = uncounted_hosts(self.topology, self.configuration.faults, found.hosts)
        accounts = [
            account
            for account in host_accounts(self.topology, found.counts, found.final)
            if account.host not in uncounted
        ]
        nodes = list(node_rows(phase))
        write_timeline(nodes, self.task.folder)
        return PointResult(
            metrics=metrics(phase, found),
            decisions={"hosts": [list(hosts) for hosts in phase.jobs]},
            tables={
                "iterations": list(iteration_rows(phase)),
                "ranks": list(rank_rows(phase)),
                "collectives": list(collective_rows(phase)),
                "nodes": nodes,
                "hosts": rows(phase.name, 1, accounts),
            },
            failures=[
                *first_lines([*wrong_executions(phase), *wrong_results(phase), *wrong_times(phase, found)]),
                *first_lines(disagreements(accounts)),
            ],
        )
