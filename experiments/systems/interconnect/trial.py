"""One trial of the interconnect: its network, its traffic, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.systems.interconnect.service import HYBRID_PROGRAM, OPTICAL_PROGRAM, InterconnectSettings
from gradbed.controller.systems.interconnect.service import InterconnectRequest as TrafficJob
from gradbed.experiments.configuration.faults import AgentFault, restarted_switches, touched_agents
from gradbed.experiments.conservation.checks import host_accounts
from gradbed.experiments.conservation.counts import disagreements, first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program, SwitchProgram
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.interconnect import links
from gradbed.experiments.systems.interconnect.bounds import most_accepted_bytes, saturation_load
from gradbed.experiments.systems.interconnect.checks import (
    changes_rates,
    contradictions,
    differences,
    impossible,
    sent_by_pair,
    unexplained_drops,
    unexplained_ends,
    wrong_ways,
)
from gradbed.experiments.systems.interconnect.configuration import InterconnectConfiguration
from gradbed.experiments.systems.interconnect.links import MeasurementWindow, loss_by_cause
from gradbed.experiments.systems.interconnect.metrics import host_capacity_bytes, link_rows, loss_rows, metrics
from gradbed.experiments.traffic.agents import MODULE, plan_traffic
from gradbed.experiments.traffic.checks import (
    latency_contradictions,
    loss_contradictions,
    mark_disagreements,
    too_fast,
)
from gradbed.experiments.traffic.connections import TrafficPhase
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.formats.datagram import ETHER_TYPE_IPV4
from gradbed.formats.packet_class import PacketClass, ether_type
from gradbed.hosts.traffic.schedule import has_flows, least_frame_bytes, longest_frame_bytes
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import HYBRID, OPTICAL, size_of, with_circuits, with_wavelengths

ETHER_TYPE_VLAN = 0x8100
"""EtherType of light: its VLAN tag is the wavelength."""

CLASSES = (
    PacketClass("electrical", (ether_type(ETHER_TYPE_IPV4),), frozenset({"light"})),
    PacketClass("light", (ether_type(ETHER_TYPE_VLAN),), frozenset({"electrical"})),
)


# ---- The trial ----


def build_topology(configuration: InterconnectConfiguration, scale: Scale) -> Topology:
    """Build the topology with the channels that its fibres have.

    Raises:
        UserError: it is another kind of network.
    """
    topology = configuration.topology.build(scale)
    size_of(topology)
    routing = configuration.routing
    if routing.channels == "wavelength":
        return with_wavelengths(topology)
    if routing.channels == "circuit":
        return with_circuits(topology, scale.time_us(routing.slot_us), scale.time_us(routing.guard_us))
    return topology


def programs_of(topology: Topology, *, channels: bool) -> dict[str, SwitchProgram]:
    """Return the programs of hybrid and optical switches.

    Args:
        channels: whether light keeps its channel behind an optical switch.
    """
    hybrid = Program.own(HYBRID_PROGRAM)
    optical = Program.own(OPTICAL_PROGRAM, UNITS=size_of(topology), CHANNELS=int(channels))
    return {each.name: hybrid if each.tier == HYBRID else optical for each in topology.switches}


class InterconnectTrial(Trial[InterconnectConfiguration]):
    """Traffic over hybrid and optical switches."""

    def __init__(self, task: TrialTask[InterconnectConfiguration]) -> None:
        super().__init__(task)
        configuration = self.configuration
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
                seed=task.seed,
            ),
            preload=[MODULE],
            classes=CLASSES,
            samples=configuration.samples.order(self.topology, task.scale),
            warm_up_us=task.scale.time_us(1000 * configuration.traffic.warm_up_ms),
        )
        traffic = plan_traffic(configuration.traffic, self.topology, task.scale, task.seed)
        self._phase = TrafficPhase(TrafficJob(), traffic, faults=configuration.faults)
        self.phases = [self._phase]

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        phase, (found,) = self._phase, measured
        results = TrafficResults.of(phase.traffic, found.agents.final, phase.job)
        accounts, counts = (
            host_accounts(self.topology, found.network.counts, found.agents.final),
            found.network.counts,
        )
        # The loads of what changes its rate meanwhile are not told.
        known = self.configuration.traffic.packets is None and not changes_rates(self.configuration.faults)
        window = MeasurementWindow.of(found.network.link_bytes) if known else None
        loads = list(links.link_loads(self.topology, counts, window, self._frame_bytes))
        values = metrics(results, loads, self.topology, self.task.scale, window)
        values["saturation_load"] = saturation_load(
            self.topology, phase.traffic.rates_bps, self._frame_bytes, self.configuration.traffic.load
        )
        values["accepted_bound"] = self._accepted_bound(results, window)
        failures = [
            *disagreements(accounts),
            *mark_disagreements(results),
            *self._wrong(results, found, values, loads),
        ]
        if window is not None:
            failures += impossible(values, loads, self.topology, window, self._frame_bytes)
            if self._exact:
                failures += differences(results, self.topology, window, self._frame_bytes, self._sends_packets)
        return TrialResult(
            metrics=values,
            decisions={"pairs": len(phase.traffic.rates_bps)},
            tables={
                "hosts": rows(phase.name, 1, accounts),
                "pairs": results.pair_rows(),
                "classes": link_rows(loads),
                "drops": loss_rows(self.topology, counts),
            },
            failures=first_lines(failures),
        )

    def _accepted_bound(self, results: TrafficResults, window: MeasurementWindow | None) -> float | None:
        """Return the upper bound on the accepted load.

        None: what was sent in the window is not known by pair, or links have no rate.
        """
        if window is None or not self._exact or not self._sends_packets:
            return None
        most_bytes = most_accepted_bytes(self.topology, window, sent_by_pair(results), self._frame_bytes)
        capacity_bytes = host_capacity_bytes(self.topology, window)
        return None if most_bytes is None or not capacity_bytes else most_bytes / capacity_bytes

    @property
    def _exact(self) -> bool:
        """Return whether hosts and links share one clock, and all hosts report to the end."""
        faults = self.configuration.faults
        return self.configuration.clock == "virtual" and not any(isinstance(each, AgentFault) for each in faults)

    @property
    def _sends_packets(self) -> bool:
        return not has_flows(self.configuration.traffic.agent_sizes)

    @property
    def _frame_bytes(self) -> int:
        return longest_frame_bytes(self.configuration.traffic.agent_sizes)

    def _contradictions(
        self, results: TrafficResults, found: PhaseResult, values: Mapping[str, Any], loads: Sequence[links.LinkLoad]
    ) -> Iterator[str]:
        configuration, counts = self.configuration, found.network.counts
        latency_us, p99_us = (
            None if values[name] is None else 1e6 * values[name] for name in ("latency_s", "latency_p99_s")
        )
        touched = bool(touched_agents(configuration.faults))  # what they have sent is in no flow
        yield from latency_contradictions(results, latency_us, {50: results.latency_us(50), 99: p99_us})
        yield from contradictions(values, [row.load for row in loads if row.load is not None])
        if configuration.program.model == "gradbed" and not touched:
            causes = loss_by_cause(self.topology, counts)
            dropped = sum(causes.values()) + sum(effect.socket_drops for effect in counts.effects.values())
            host_drops = sum(each.socket_drops for each in host_accounts(self.topology, counts, found.agents.final))
            lost = round((values["loss"] or 0.0) * results.sent)
            yield from loss_contradictions(results, counts, lost, dropped, host_drops)
        if not configuration.faults:
            routing = configuration.routing
            yield from wrong_ways(self.topology, counts, results, routing.policy, routing.flowlet_us)
            if configuration.clock == "virtual":
                yield from too_fast(results, self.topology, least_frame_bytes(configuration.traffic.agent_sizes))

    def _wrong(
        self, results: TrafficResults, found: PhaseResult, values: Mapping[str, Any], loads: Sequence[links.LinkLoad]
    ) -> list[str]:
        """Return a line for each misdelivered packet, and for packets lost without a counter that explains it."""
        lines = []
        if not restarted_switches(self.configuration.faults):  # their counters are gone
            lines += links.sent_disagreements(self.topology, found.network.counts)
            lines += unexplained_ends(self.topology, found.network.counts)
            lines += self._contradictions(results, found, values, loads)
        lines += unexplained_drops(self.topology, found.network.counts, self.configuration.faults)
        if results.misdelivered:
            lines.append(f"{results.misdelivered} packets came to hosts that they were not for")
        if results.foreign:
            lines.append(f"{results.foreign} frames came that nobody sent")
        return lines
