"""One trial of the workload system: its network, its traffic, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.entries.planner import TrafficRequest as TrafficJob
from gradbed.experiments.configuration.faults import touched_agents
from gradbed.experiments.conservation.checks import host_accounts
from gradbed.experiments.conservation.counts import HostAccount, first_lines, rows
from gradbed.experiments.custom_program import custom_network
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.workload.checks import StateCell, packet_failures, parse_expectation, unmet
from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration
from gradbed.experiments.systems.workload.metrics import (
    PERCENTILES,
    background_metrics,
    busiest_link_load,
    connection_metrics,
    coverage_metrics,
    coverage_rows,
    drop_rows,
    latency_rows,
    loss_metrics,
    switch_rows,
    traffic_metrics,
)
from gradbed.experiments.systems.workload.report import notes
from gradbed.experiments.tables.metric import Value
from gradbed.experiments.traffic.agents import MODULE, TrafficPlan, plan_traffic, sending_us
from gradbed.experiments.traffic.background import Background, plan_background
from gradbed.experiments.traffic.checks import (
    dropped_packets,
    flow_contradictions,
    latency_contradictions,
    loss_contradictions,
    too_fast,
    too_much,
)
from gradbed.experiments.traffic.connections import MODULE as CONNECTIONS
from gradbed.experiments.traffic.connections import (
    ConnectionResults,
    ConnectionTraffic,
    TrafficPhase,
    lost_lines,
    plan_connections,
)
from gradbed.experiments.traffic.packet_options import Template, packet_choice
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.hosts.traffic.replay import Replay, read_capture
from gradbed.hosts.traffic.schedule import longest_frame_bytes
from gradbed.switch.insight.coverage import Report
from gradbed.switch.insight.coverage_report import html_page
from gradbed.switch.insight.source import SourceMap
from gradbed.topo.files import TopologyFile, topology_file
from gradbed.topo.graph import Topology

LONGEST_FRAME_BYTES = 9234
"""Longest frame of any traffic."""

SILENCE = "gradbed.hosts.agents.kernel.namespace"
"""Module of agents that take in every frame."""


def network_of(configuration: WorkloadConfiguration, scale: Scale) -> NetworkSetup:
    """Return the network with the program on every switch; compiles it, and checks the entries.

    Raises:
        UserError: the program or its entries have errors.
    """
    program = configuration.program
    topology = configuration.topology.build(scale)
    return custom_network(
        topology,
        program.path,
        program.all_entries,
        file=_file(configuration, scale),
        macros=program.definitions,
        by=program,
    )


def _file(configuration: WorkloadConfiguration, scale: Scale) -> TopologyFile | None:
    section = configuration.topology
    return topology_file(section.kind, section.link.model(scale), scale.factor)


def background_of(
    configuration: WorkloadConfiguration, topology: Topology, scale: Scale, seed: int
) -> Background | None:
    """Return the background jobs; None if there are none.

    Raises:
        UserError: traffic has no known duration.
    """
    if not configuration.background.workers:
        return None
    if configuration.frames.replay is not None:
        raise UserError("--background goes without --replay, whose frames come at times of their own")
    duration_us = sending_us(configuration.traffic, topology, scale, seed)
    return plan_background(configuration.background, topology, scale, seed, duration_us)


def traffic_of(
    configuration: WorkloadConfiguration,
    topology: Topology,
    scale: Scale,
    seed: int,
    background: Background | None = None,
) -> TrafficPlan | ConnectionTraffic:
    """Return the traffic of a trial.

    Raises:
        UserError: traffic, template or capture file is not possible.
    """
    section, frames = configuration.traffic, configuration.frames
    if section.transport != "udp":
        if frames.template is not None or frames.replay is not None:
            raise UserError(f"--transport: {section.transport} goes without --template and --replay")
        return plan_connections(section, topology, scale, seed)
    # Programs may put packets into headers of their own.
    plan = partial(
        plan_traffic,
        section,
        topology,
        scale,
        seed,
        any_frame=True,
        except_udp_ports={} if background is None else background.udp_ports,
    )
    if frames.replay is not None:
        if frames.template is not None:
            raise UserError("--replay and --template do not go together: a capture has its frames' headers")
        sender = topology.host(frames.replay_host or topology.hosts[0].name)
        replay = Replay(
            file=frames.replay,
            speed=frames.replay_speed * scale.factor,
            mtu_bytes=frames.mtu_bytes,
            src_mac=sender.mac,
            dst_mac=sender.gateway_mac,
            destination_macs={
                host.ip: topology.destination_mac(sender.name, host.name)
                for host in topology.hosts
                if host.name != sender.name
            },
        )
        return replace(plan(replay={sender.name: replay}), notes=read_capture(replay).notes)
    if frames.template is None:
        if frames.layers is not None:
            raise UserError("--layers goes with --template")
        return plan()
    if section.sizes != "fixed":
        raise UserError("--template: frames of a template have a fixed size: use --sizes fixed")
    return plan(headers=Template(frames.template, frames.layers).headers(topology, section.frame_bytes))


class WorkloadTrial(Trial[WorkloadConfiguration]):
    """Traffic through a user's program."""

    def __init__(self, task: TrialTask[WorkloadConfiguration]) -> None:
        super().__init__(task)
        configuration = self.configuration
        setup = network_of(configuration, task.scale)
        self.topology = setup.topology
        self.background = background_of(configuration, self.topology, task.scale, task.seed)
        self.traffic = traffic_of(configuration, self.topology, task.scale, task.seed, self.background)
        trace = configuration.program.trace
        self.network = replace(
            setup,
            preload=[CONNECTIONS] if isinstance(self.traffic, ConnectionTraffic) else [MODULE, SILENCE],
            capture=[host.name for host in self.topology.hosts],
            samples=configuration.samples.order(self.topology, task.scale),
            registers=self._registers(),
            coverage=configuration.program.coverage,
            trace=None if trace is None else packet_choice(trace, self.topology),
            warm_up_us=task.scale.time_us(1000 * configuration.traffic.warm_up_ms),
            mtu_bytes=max(
                configuration.frames.mtu_bytes,
                longest_frame_bytes(configuration.traffic.agent_sizes) - ETHERNET_BYTES,
            ),
        )
        self._phase = TrafficPhase(TrafficJob(), self.traffic, self.background, configuration.faults)
        self._phase.tells_unfinished = True  # a user's program may recirculate for ever
        self.phases = [self._phase]

    def _registers(self) -> list[tuple[str, str]]:
        """Return the registers to read: those that are asked for, and those with expectations."""
        names = list(self.configuration.program.registers)
        for subject, condition in self.configuration.expect.items():
            cell = parse_expectation(subject, condition).subject
            if isinstance(cell, StateCell) and cell.kind == "register":
                names.append(cell.name if cell.switch is None else f"{cell.switch}:{cell.name}")
        found = []
        for name in names:
            switch, _, register = name.rpartition(":")
            switches = (
                [self.topology.switch(switch).name] if switch else [each.name for each in self.topology.switches]
            )
            found += [(each, register) for each in switches]
        return list(dict.fromkeys(found))

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        phase, (found,) = self._phase, measured
        results = (
            ConnectionResults.of(self.traffic, found.agents.final, phase.job)
            if isinstance(self.traffic, ConnectionTraffic)
            else TrafficResults.of(self.traffic, found.agents.final, phase.job)
        )
        rounds = (
            [] if self.background is None else self.background.rows(found.agents.final, phase.job, self.task.scale)
        )
        if not phase.packets and not found.network.unsettled:
            raise UserError("no packet was sent: send longer (--duration-ms), or more (--load, --packets)")
        accounts = host_accounts(self.topology, found.network.counts, found.agents.final)
        metrics = {
            **(connection_metrics(results) if isinstance(results, ConnectionResults) else traffic_metrics(results)),
            **background_metrics(rounds),
            **loss_metrics(found.network.counts),
            "busiest_link_load": busiest_link_load(
                found.network.link_bytes, self.topology, self.configuration.faults, self.task.scale
            ),
            **coverage_metrics(found.observed.coverage),
        }
        self._write_pages(found.observed.coverage)
        return TrialResult(
            metrics=metrics,
            tables={
                "pairs": results.pair_rows(),
                "flows": results.flow_rows(),
                "latency": latency_rows(results) if isinstance(results, TrafficResults) else [],
                "background": rounds,
                "switches": switch_rows(found.network.counts),
                "drops": drop_rows(found.network.counts),
                "counters": self._counter_rows(found),
                "registers": self._register_rows(found),
                "hosts": rows(phase.name, 1, accounts),
                "coverage": coverage_rows(found.observed.coverage),
                "trace": found.observed.trace,
                "notes": [{"note": note} for note in self._notes(metrics, found, results)],
            },
            failures=[
                *self._miscounts(found, results, accounts),
                *first_lines(self._contradictions(found, results, metrics, accounts)),
                *([] if self.background is None else self.background.failures(rounds)),
                *unmet(self.configuration.expect, metrics, lambda cell: self._cell(found, cell)),
            ],
        )

    def _miscounts(
        self, found: PhaseResult, results: TrafficResults | ConnectionResults, accounts: Sequence[HostAccount]
    ) -> list[str]:
        if found.network.unsettled or isinstance(results, ConnectionResults):
            return []
        return packet_failures(self.topology, found.network.counts, accounts, results)

    def _contradictions(
        self,
        found: PhaseResult,
        results: TrafficResults | ConnectionResults,
        metrics: Mapping[str, Any],
        accounts: Sequence[HostAccount],
    ) -> Iterator[str]:
        """Yield a line where the run's own numbers contradict each other, once no packet is in flight."""
        configuration, topology = self.configuration, self.topology
        told_us = {50.0: metrics["flow_p50_us"], 99.0: metrics["flow_p99_us"]}
        yield from flow_contradictions(results.flow_rows(), told_us)
        if found.network.unsettled or isinstance(results, ConnectionResults):
            return
        percentiles_us = {percent: metrics[name] for name, percent in PERCENTILES.items()}
        # What agents that were stopped have sent is in no flow.
        touched = bool(touched_agents(configuration.faults))
        if not results.replayed:
            yield from latency_contradictions(results, metrics["mean_us"], percentiles_us)
        if found.network.counts.devices and self.background is None and not touched:
            # Of links as the run tells it, of switches as they tell it.
            effects = found.network.counts.effects.values()
            on_links = sum(each.queue_drops.packets + each.losses.packets for each in effects)
            told = metrics["queue_drops"] + metrics["link_losses"]
            lost = metrics["sent_packets"] - metrics["received_packets"]
            host_drops = sum(account.socket_drops for account in accounts)
            dropped = dropped_packets(found.network.counts) - on_links + told
            yield from loss_contradictions(results, found.network.counts, lost, dropped, host_drops)
            if metrics["loss"] is not None and abs(metrics["loss"] * metrics["sent_packets"] - lost) > 0.5:
                yield f"{metrics['loss']:g} of {metrics['sent_packets']} packets are told to be lost, not {lost}"
        if not configuration.faults and configuration.clock == "virtual":
            yield from too_fast(results, topology)
            if not results.duplicates:
                yield from too_much(results, topology, metrics["delivered_bps"])
            load, seconds = (
                metrics["busiest_link_load"],
                (found.network.link_bytes.to_us - found.network.link_bytes.from_us) / 1e6,
            )
            if load is not None and seconds:
                # The end of a frame that was being sent when hosts began.
                rates_bps = [link.model.rate_bps for link in topology.switch_links if link.model.rate_bps]
                most = 1 + 8 * LONGEST_FRAME_BYTES / (min(rates_bps) * seconds)
                if load > most:
                    yield f"the busiest link carried {load:g} of its rate, where {most:g} is the most"

    def _notes(
        self, metrics: Mapping[str, Value], found: PhaseResult, results: TrafficResults | ConnectionResults
    ) -> list[str]:
        missing = self.network.trace is not None and not found.observed.trace
        return [
            *self.network.notes,
            *(self.traffic.notes if isinstance(self.traffic, TrafficPlan) else ()),
            *notes(metrics, drop_rows(found.network.counts)),
            *(lost_lines(results.flow_rows()) if isinstance(results, ConnectionResults) else []),
            *([f"no packet was {self.configuration.program.trace}"] if missing else []),
        ]

    def _write_pages(self, reports: Sequence[Report]) -> None:
        """Write the sources with counts into the trial's folder.

        The file is coverage.html; with several programs there is a coverage-PROGRAM.html for each.
        """
        folders = [each.source.parent for each in self.network.switches.values() if isinstance(each, Program)]
        for report in reports:
            name = "coverage" if len(reports) == 1 else f"coverage-{Path(report.program).stem}"
            page = html_page(report, SourceMap(None, folders))
            (self.task.folder / f"{name}.html").write_text(page, encoding="utf-8")

    def _cell(self, found: PhaseResult, cell: StateCell) -> int | None:
        """Return the sum of a cell over the switches that it names; None: it cannot be read."""
        switches = [cell.switch] if cell.switch else [switch.name for switch in self.topology.switches]
        if cell.kind == "register":
            values = [found.network.registers[switch, cell.name].get(cell.index, 0) for switch in switches]
            told = [value for value in values if value is not None]
            return sum(told) if len(told) == len(values) else None
        known = [switch for switch in switches if found.network.counts.has(switch, cell.name)]
        if not known:
            raise UserError(f"expect: no switch has a counter {cell.name!r}")
        return sum(found.network.counts.cell(switch, cell.name, cell.index).packets for switch in known)

    def _counter_rows(self, found: PhaseResult) -> list[dict[str, Any]]:
        return [
            {"switch": switch, "counter": name, "index": index, "packets": tally.packets, "bytes": tally.bytes}
            for switch, counters in found.network.counts.counters.items()
            for name, cells in counters.items()
            for index, tally in cells.items()
            if tally.packets
        ]

    def _register_rows(self, found: PhaseResult) -> list[dict[str, Any]]:
        return [
            {"switch": switch, "register": name, "index": index, "value": value}
            for (switch, name), cells in found.network.registers.items()
            for index, value in cells.items()
        ]
