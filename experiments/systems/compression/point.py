"""One point of the compression system: its network, its phase, and what that found."""

from __future__ import annotations

from collections.abc import Sequence

from controller.planning.hosts import choose_hosts
from controller.systems.compression.service import PROGRAM, CompressionSettings
from experiments.accounts.accounting import disagreements, rows
from experiments.accounts.host_accounts import host_accounts
from experiments.configuration.faults import restarted_switches
from experiments.configuration.samples import SampleOrder
from experiments.fidelity.report import FidelityReport
from experiments.phases import Measured, PointResult
from experiments.programs import Program
from experiments.setup import NetworkSetup, PointTask
from experiments.systems.compression.configuration import CompressionConfiguration, ScriptWorkload
from experiments.systems.compression.expected import unexpected
from experiments.systems.compression.metrics import LONGEST_QUEUE, metrics, rate_rows, round_rows
from experiments.systems.compression.phase import MODULE, CompressionPhase
from experiments.systems.compression.script_phase import ScriptPhase
from experiments.torch_scripts import MODULE as SCRIPTS
from experiments.traffic.agents import MODULE as TRAFFIC
from topo.graph import Topology

MOST_FAILURES = 5
"""Of a kind that a point tells."""


class CompressionPoint:
    """experiments.phases.PointRun."""

    def __init__(self, task: PointTask, configuration: CompressionConfiguration) -> None:
        self.task = task
        self.configuration = configuration
        self.topology = configuration.topology.build(task.scale)
        hosts = choose_hosts(self.topology, configuration.workload.workers)
        sender = idle_hosts(self.topology, hosts)[0] if configuration.background.load else None
        self._is_script = isinstance(configuration.workload, ScriptWorkload)
        kind = ScriptPhase if self._is_script else CompressionPhase
        self.phases = [kind(hosts, sender, self.topology, configuration, task)]
        program = Program.own(PROGRAM)
        server = self.phases[0].server
        switch = self.topology.attachment(server).name
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            CompressionSettings(congestion_packets=configuration.switches.congestion_packets or None),
            capture=[server],
            preload=[MODULE, TRAFFIC, *([SCRIPTS] if self._is_script else [])],
            keep_open=self.phases[0].keep_open,
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
            for account in host_accounts(self.topology, found.counts, found.final)
            # A script has connections of its own, which nobody counts.
            if not self._is_script
            and account.host not in gone
            and self.topology.attachment(account.host).name not in restarted
        ]
        mismatches = [*phase.mismatches(), *unexpected(phase, found, self.configuration, self.topology)]
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


def idle_hosts(topology: Topology, hosts: tuple[Sequence[str], str]) -> list[str]:
    """Neither workers nor server. hosts: these."""
    workers, server = hosts
    return [host.name for host in topology.hosts if host.name not in {*workers, server}]
