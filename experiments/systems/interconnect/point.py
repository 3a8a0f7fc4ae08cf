"""One point of the interconnect: its network, its traffic, and what became of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from controller.systems.interconnect.service import HYBRID_PROGRAM, OPTICAL_PROGRAM, InterconnectSettings
from experiments.accounting import disagreements, rows
from experiments.configuration.faults import restarted_switches
from experiments.fidelity.report import FidelityReport
from experiments.host_accounts import host_accounts
from experiments.programs import Program
from experiments.scale import Scale
from experiments.system import OPENFLOW, Measured, NetworkSetup, PointResult, PointTask
from experiments.systems.interconnect import links
from experiments.systems.interconnect.bounds import saturation_bound
from experiments.systems.interconnect.configuration import InterconnectConfiguration
from experiments.systems.interconnect.metrics import link_rows, loss_rows, metrics
from experiments.systems.interconnect.phase import TrafficPhase
from experiments.traffic.agents import MODULE
from experiments.traffic.results import TrafficResults
from topo.graph import Topology
from topo.shapes.optical_electrical import HYBRID, OPTICAL, size_of, with_circuits, with_wavelengths

MOST_FAILURES = 5


def build_topology(configuration: InterconnectConfiguration, scale: Scale) -> Topology:
    """With what its fibres carry. UserError for any other kind of network."""
    topology = configuration.topology.build(scale)
    size_of(topology)
    routing = configuration.routing
    if routing.channels == "wavelength":
        return with_wavelengths(topology)
    if routing.channels == "circuit":
        return with_circuits(topology, scale.time_us(routing.slot_us), scale.time_us(routing.guard_us))
    return topology


def programs_of(topology: Topology, *, channels: bool) -> dict[str, Program | Literal["openflow"]]:
    """What hybrid and optical switches run. channels: whether light keeps its channel behind an optical switch."""
    hybrid = Program.own(HYBRID_PROGRAM)
    optical = Program.own(OPTICAL_PROGRAM, UNITS=size_of(topology), CHANNELS=int(channels))
    return {each.name: hybrid if each.tier == HYBRID else optical for each in topology.switches}


class InterconnectPoint:
    """experiments.system.PointRun."""

    def __init__(self, task: PointTask, configuration: InterconnectConfiguration) -> None:
        self._task, self._configuration = task, configuration
        routing = configuration.routing
        self.topology = build_topology(configuration, task.scale)
        # Of circuits an optical switch has one for each fibre at a time.
        programs = programs_of(self.topology, channels=routing.channels == "wavelength")
        if routing.optical == "openflow":
            programs |= {switch.name: OPENFLOW for switch in self.topology.switches if switch.tier == OPTICAL}
        self.network = NetworkSetup(
            self.topology,
            programs,
            InterconnectSettings(
                policy=routing.policy,
                per_wavelength=routing.channels != "uplink",
                flowlet_us=task.scale.time_us(routing.flowlet_us),
                optical=routing.optical,
            ),
            routing.model,
            preload=[MODULE],
            samples=configuration.samples.order(self.topology, task.scale),
        )
        self.phases = [TrafficPhase(configuration.traffic, self.topology, task)]

    @property
    def _measured_s(self) -> float | None:
        """Emulated time in which what is measured was sent; None: it follows from the packets."""
        section = self._configuration.traffic
        if section.packets is not None:
            return None
        return self._task.scale.time_us(1000 * (section.duration_ms - section.warm_up_ms)) / 1e6

    def result(self, measured: Sequence[Measured]) -> PointResult:
        (found,) = measured
        (phase,) = self.phases
        (answer,) = found.answers
        results = TrafficResults.of(phase.traffic, found.final, answer["job"])
        accounts = host_accounts(self.topology, found)
        section, counts = self._configuration.traffic, found.counts
        values = metrics(results, counts, self.topology, section, self._task.scale, self._measured_s or 0.0)
        values["saturation_bound"] = saturation_bound(self.topology, phase.traffic.rates_bps)
        failures = [*disagreements(accounts), *self._wrong(results, found)]
        return PointResult(
            metrics=values,
            fidelity=FidelityReport(),
            decisions={"pairs": len(phase.traffic.rates_bps)},
            tables={
                "hosts": rows(phase.name, 1, accounts),
                "pairs": results.pair_rows(),
                "classes": link_rows(self.topology, counts),
                "drops": loss_rows(self.topology, counts),
            },
            failures=failures[:MOST_FAILURES],
        )

    def _wrong(self, results: TrafficResults, found: Measured) -> list[str]:
        """Packets that came where they do not belong, or that vanished without a counter that tells."""
        if restarted_switches(self._configuration.faults):
            return []  # their counters are gone
        lines = links.disagreements(self.topology, found.counts)
        if results.misdelivered:
            lines.append(f"{results.misdelivered} packets came to hosts that they were not for")
        if results.foreign:
            lines.append(f"{results.foreign} frames came that nobody sent")
        return lines
