"""A trial of the training system: its network, its jobs, its result, and the timeline for Perfetto.

The timeline is in Chrome's trace event format (complete events, "ph": "X"), for ui.perfetto.dev and
chrome://tracing: times in microseconds, a process for each job, two threads for each rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradbed.controller.systems.training.service import PROGRAM, TrainingSettings
from gradbed.experiments.conservation.checks import host_accounts, uncounted_hosts
from gradbed.experiments.conservation.counts import disagreements, first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program, SwitchProgram
from gradbed.experiments.runtimes.agents import KERNEL_NIC
from gradbed.experiments.setup import FabricProgram, NetworkSetup, SwitchCollectives, TrialTask
from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.training.checks import wrong_executions, wrong_results, wrong_times
from gradbed.experiments.systems.training.configuration import TrainingConfiguration, TrainingSwitchesSection
from gradbed.experiments.systems.training.metrics import (
    collective_rows,
    iteration_rows,
    metrics,
    node_rows,
    rank_rows,
)
from gradbed.experiments.systems.training.phase import AGENT, TrainingPhase
from gradbed.experiments.systems.training.placement import place_ranks, switched_groups
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, in_any_form, udp_datagram
from gradbed.formats.roce import BTH, ROCE_PORT, Opcode, most_ip_bytes
from gradbed.hosts.systems.training.source import trace_of
from gradbed.topo.graph import Topology
from gradbed.topo.link import USUAL_MTU_BYTES


def _of_opcode(name: str, opcode: Opcode) -> PacketClass:
    return PacketClass(name, (bits_of(BTH, "opcode", DATAGRAM_BYTES, 0xFF, opcode), *udp_datagram(ROCE_PORT)))


CLASSES = (
    _of_opcode("ACK", Opcode.ACKNOWLEDGE),
    _of_opcode("CNP", Opcode.CNP),
    PacketClass("data", udp_datagram(ROCE_PORT)),
)


# ---- The trial ----


def _routers(topology: Topology) -> dict[str, SwitchProgram]:
    program = Program.own(PROGRAM)
    return {switch.name: program for switch in topology.switches}


def fabric_program_of(section: TrainingSwitchesSection, topology: Topology, seed: int) -> FabricProgram | None:
    """Return the network whose switches carry all packets; None: training's own switches do.

    Raises:
        UserError: the named system's switches cannot.
    """
    if section.fabric_program == "none":
        return None
    system, _, policy = section.fabric_program.partition(":")
    return find_system(system).fabric_program(topology, policy, seed)


def _classes(collectives: SwitchCollectives | None, fabric_program: FabricProgram | None) -> Sequence[PacketClass]:
    if collectives is not None:
        return [*collectives.classes, *CLASSES]
    return CLASSES if fabric_program is None else in_any_form(CLASSES)


class TrainingTrial(Trial[TrainingConfiguration]):
    """Jobs that train over routing switches."""

    def __init__(self, task: TrialTask[TrainingConfiguration]) -> None:
        super().__init__(task)
        configuration = self.configuration
        fabric_program = fabric_program_of(configuration.switches, self.topology, task.seed)
        if fabric_program is not None:
            self.topology = fabric_program.topology
        ranks = configuration.ranks_of_a_job(len(self.topology.hosts))
        jobs = place_ranks(self.topology, ranks, configuration.ranks, task.seed)
        source = configuration.workload.source(ranks)
        collectives, switched = switched_groups(configuration.collectives, self.topology, jobs, trace_of(source))
        carriers = collectives or fabric_program
        self.network = NetworkSetup(
            self.topology,
            _routers(self.topology) if carriers is None else carriers.switches,
            TrainingSettings(
                policy=configuration.switches.balancing,
                seed=task.seed,
                flowlet_us=task.scale.time_us(configuration.switches.flowlet_us),
                marking=configuration.switches.marking(),
                routes=carriers is None,
            ),
            services=[] if carriers is None else [carriers.service],
            preload=[AGENT.partition(":")[0], KERNEL_NIC.partition(":")[0]],
            classes=_classes(collectives, fabric_program),
            mtu_bytes=max(USUAL_MTU_BYTES, most_ip_bytes(configuration.transport.mtu_bytes)),
        )
        service = None if collectives is None else collectives.service.name
        self._phase = TrainingPhase(jobs, source, self.topology, task, switched, service)
        self.phases = [self._phase]

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        phase, (found,) = self._phase, measured
        raw_frames = uncounted_hosts(self.topology, self.configuration.faults, found.agents.hosts)
        accounts = [
            account
            for account in host_accounts(self.topology, found.network.counts, found.agents.final)
            if account.host not in raw_frames
        ]
        nodes = list(node_rows(phase))
        write_timeline(nodes, self.task.folder)
        return TrialResult(
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


# ---- Timeline ----


FILE = "timeline.perfetto.json"


def trace_events(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the trace events of rows of the table "nodes"."""
    named = set()
    for row in rows:
        computes = row["kind"] in ("compute", "memory")
        thread = 2 * row["rank"] + (not computes)
        if (row["job"], thread) not in named:
            named.add((row["job"], thread))
            what = "computation" if computes else "communication"
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": row["job"],
                "tid": thread,
                "args": {"name": f"rank {row['rank']} {what}"},
            }
        yield {
            "ph": "X",
            "name": row["name"],
            "cat": row["kind"],
            "pid": row["job"],
            "tid": thread,
            "ts": 1e6 * row["begin_s"],
            "dur": 1e6 * (row["end_s"] - row["begin_s"]),
            "args": {"node": row["node"], "size_bytes": row["size_bytes"], "iteration": row["iteration"]},
        }


def write_timeline(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """Write the timeline into the folder; no file where no rank reported its nodes."""
    events = list(trace_events(rows))
    if events:
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        (folder / FILE).write_text(text, encoding="utf-8")
