"""One trial of the compression system: its network, its phase, and its result."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.controller.systems.compression.service import PROGRAM, CompressionSettings
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.conservation.checks import host_accounts, uncounted_hosts
from gradbed.experiments.conservation.counts import disagreements, first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.compression.checks import contradictions, unexpected, wrong_contents, wrong_training
from gradbed.experiments.systems.compression.configuration import CompressionConfiguration, CompressionScriptWorkload
from gradbed.experiments.systems.compression.metrics import LONGEST_QUEUE, metrics, rate_rows, round_rows
from gradbed.experiments.systems.compression.phase import MODULE, CompressionPhase, CompressionScriptPhase
from gradbed.experiments.torch_scripts import MODULE as SCRIPTS
from gradbed.experiments.traffic.agents import MODULE as TRAFFIC
from gradbed.formats.compression import PART, PART_PORT, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import choose_hosts


def _part(name: str, value: Flags) -> PacketClass:
    return PacketClass(name, (bits_of(PART, "flags", DATAGRAM_BYTES, Flags.ACK, value), *udp_datagram(PART_PORT)))


CLASSES = (_part("part", Flags(0)), _part("ACK", Flags.ACK))


# ---- The trial ----


class CompressionTrial(Trial[CompressionConfiguration]):
    """Gradients that are compressed as far as the network asks for it."""

    def __init__(self, task: TrialTask[CompressionConfiguration]) -> None:
        super().__init__(task)
        configuration = self.configuration
        hosts = choose_hosts(self.topology, configuration.workload.workers)
        sender = idle_hosts(self.topology, hosts)[0] if configuration.background.load else None
        self._is_script = isinstance(configuration.workload, CompressionScriptWorkload)
        kind = CompressionScriptPhase if self._is_script else CompressionPhase
        self._phase = kind(hosts, sender, self.topology, task)
        self.phases = [self._phase]
        program = Program.own(PROGRAM)
        server = self._phase.server
        switch = self.topology.attachment(server).name
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            CompressionSettings(congestion_packets=configuration.switches.congestion_packets or None),
            capture=[server],
            preload=[MODULE, TRAFFIC, *([SCRIPTS] if self._is_script else [])],
            keep_open=self._phase.keep_open,
            classes=CLASSES,
            samples=SampleOrder(
                max(1, task.scale.time_us(configuration.samples.interval_us)),
                [(switch, server)],
                [(switch, LONGEST_QUEUE)],
            ),
        )

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        phase, (found,) = self._phase, measured
        raw_frames = uncounted_hosts(self.topology, self.configuration.faults, found.agents.hosts)
        accounts = [
            account
            for account in host_accounts(self.topology, found.network.counts, found.agents.final)
            # A script has connections of its own, which nobody counts.
            if not self._is_script and account.host not in raw_frames
        ]
        values, told = metrics(phase, found), list(round_rows(phase))
        return TrialResult(
            metrics=values,
            decisions={"hosts": [phase.server, *phase.workers]},
            tables={
                "rounds": told,
                "rates": list(rate_rows(phase)),
                "hosts": rows(phase.name, 1, accounts),
            },
            failures=[
                *first_lines([*phase.mismatches(), *unexpected(phase, found)]),
                *first_lines(disagreements(accounts)),
                *first_lines(contradictions(phase, found, values, told)),
                *first_lines(wrong_contents(phase)),
                *first_lines(wrong_training(phase)),
            ],
        )


def idle_hosts(topology: Topology, hosts: tuple[Sequence[str], str]) -> list[str]:
    """Return the hosts that are neither workers nor the server."""
    workers, server = hosts
    return [host.name for host in topology.hosts if host.name not in {*workers, server}]
