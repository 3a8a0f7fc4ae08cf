"""One point of the compression system: its network, its phase, and what that found."""

from __future__ import annotations

from collections.abc import Sequence

from controller.planning.hosts import choose_hosts
from controller.systems.compression.service import PROGRAM, CompressionSettings
from experiments.accounting import disagreements, rows
from experiments.configuration.faults import restarted_switches
from experiments.fidelity.report import FidelityReport
from experiments.host_accounts import host_accounts
from experiments.programs import Program
from experiments.sampling import SampleOrder
from experiments.system import Measured, NetworkSetup, PointResult, PointTask
from experiments.systems.compression.configuration import CompressionConfiguration
from experiments.systems.compression.metrics import LONGEST_QUEUE, metrics, rate_rows, round_rows
from experiments.systems.compression.phase import MODULE, CompressionPhase

MOST_FAILURES = 5
"""Of a kind that a point tells."""


class CompressionPoint:
    """experiments.system.PointRun."""

    def __init__(self, task: PointTask, configuration: CompressionConfiguration) -> None:
        self.task = task
        self.configuration = configuration
        self.topology = configuration.topology.build(task.scale)
        hosts = choose_hosts(self.topology, configuration.workload.workers)
        self.phases = [CompressionPhase(hosts, self.topology, configuration, task)]
        program = Program.own(PROGRAM)
        server = self.phases[0].server
        switch = self.topology.attachment(server).name
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            CompressionSettings(congestion_packets=configuration.switches.congestion_packets or None),
            configuration.switches.model,
            capture=[server],
            preload=[MODULE],
            samples=SampleOrder(
                max(1, task.scale.time_us(configuration.samples.interval_us)),
                [(switch, server)],
                [(switch, LONGEST_QUEUE)],
            ),
        )

    def result(self, measured: Sequence[Measured]) -> PointResult:
        (phase,), (found,) = self.phases, measured
        gone = {self.phases[0].workers[int(name.split()[-1])] for name in phase.stopped}
        restarted = restarted_switches(self.configuration.faults)
        accounts = [
            account
            for account in host_accounts(self.topology, found)
            if account.host not in gone and self.topology.attachment(account.host).name not in restarted
        ]
        mismatches = phase.mismatches()
        return PointResult(
            metrics=metrics(phase, found, self.topology, self.task.scale),
            fidelity=FidelityReport(),
            decisions={"hosts": [phase.server, *phase.workers]},
            tables={
                "rounds": list(round_rows(phase, self.task.scale)),
                "rates": list(rate_rows(phase, self.task.scale)),
                "hosts": rows(phase.name, 1, accounts),
            },
            failures=[
                *mismatches[:MOST_FAILURES],
                *([f"and {len(mismatches) - MOST_FAILURES} more"] if len(mismatches) > MOST_FAILURES else []),
                *disagreements(accounts)[:MOST_FAILURES],
            ],
        )
