"""The one engine: runs a point of any system, from its network coming up to its last count.

A point has phases, one after the other on the same network. In each the service of the system is asked for the
phase's jobs, their agents start, and once all are ready they begin; the phase takes in what they tell until it is
complete. What switches, links and agents counted in between is the system's to make sense of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from gradbed.common.errors import EndlessCircle, UserError
from gradbed.emulation.switches.fabric_layout import link_seed
from gradbed.experiments.accounts.accounting import first_lines
from gradbed.experiments.accounts.conservation import (
    class_disagreements,
    class_rows,
    pause_disagreements,
    switch_disagreements,
    uncounted_hosts,
)
from gradbed.experiments.accounts.counts import Counts
from gradbed.experiments.captures import capturing, ordered
from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.engine.faults import Timeline, schedule
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.engine.sampling import Carried, Sampler
from gradbed.experiments.engine.settling import longest_stand_s, settle
from gradbed.experiments.fidelity.verdict import FidelityReport, worst_report
from gradbed.experiments.phases import Measured, OtherRequest, Phase, PointResult, Progress
from gradbed.experiments.records.run_folder import write_network
from gradbed.experiments.setup import NetworkSetup, PointTask
from gradbed.experiments.system import System
from gradbed.experiments.testbeds.agents import AgentSpec
from gradbed.experiments.testbeds.interface import Testbed
from gradbed.experiments.testbeds.opening import loading_testbed, open_testbed
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from gradbed.experiments.testbeds.loading import Loading

Told = TypeVar("Told")

OnProgress = Callable[[Sequence[Progress]], None]
"""Told after every event of an agent."""


def run_point(
    system: System,
    task: PointTask,
    on_progress: OnProgress = lambda bars: None,
    onlooker: Onlooker = NOBODY,
) -> PointResult:
    """Run one point. UserError for what the user can put right. With the real clock: in a sandbox, as root. A point
    without phases is computed, and no network comes up."""
    with loading_testbed(task) as loading:
        return _run_point(system, task, loading, on_progress, onlooker)


def _run_point(
    system: System, task: PointTask, loading: Loading | None, on_progress: OnProgress, onlooker: Onlooker
) -> PointResult:
    point = system.point(task)
    if not point.phases:
        return point.result(())
    measured, reports = [], []
    on_each = _both(on_progress, onlooker.progressed)
    with (
        open_testbed(system, point.network, task, loading) as testbed,
        capturing(testbed.fabric, ordered(task.capture, testbed.fabric, point.network.capture), task.folder),
        ExitStack() as stack,
    ):
        testbed.fabric.count_classes([each.words for each in point.network.classes])
        onlooker.network_is_up(testbed, point.network, task, system.name)
        stack.callback(onlooker.network_goes)
        for phase in point.phases:
            setup = point.network
            found, report = run_phase(
                testbed, phase, task, on_each, setup.samples, setup.registers, setup.warm_up_us, onlooker
            )
            measured.append(found)
            reports.append(report)
    result = point.result(measured)
    topology = point.network.topology
    plans = {phase.name: found.plan for phase, found in zip(point.phases, measured, strict=True) if found.plan}
    write_network(task.folder, topology, plans)
    return replace(
        result,
        fidelity=worst_report(reports),
        failures=[*_failures(point.network, task, point.phases, measured), *result.failures],
        decisions={
            **result.decisions,
            # The n-th packet of a direction has the n-th draw of its generator, whatever the time.
            "link_seeds": {f"{link.a.node}-{link.b.node}": link_seed(task.seed, link) for link in topology.links},
        },
        tables={
            **result.tables,
            **_sample_tables(point.phases, measured),
            **_phase_tables(point.network, point.phases, measured),
        },
    )


def _failures(
    network: NetworkSetup, task: PointTask, phases: Sequence[Phase], measured: Sequence[Measured]
) -> Iterator[str]:
    """Of any system: which phase did not come to rest; at which switch, and of which class where, packets are missing
    or too many."""
    yield from (found.unsettled for found in measured if found.unsettled)
    for phase, found in zip(phases, measured, strict=True):
        if found.unsettled:
            continue
        topology, counts = network.topology, found.counts
        raw_frames = uncounted_hosts(topology, task.configuration.faults, found.hosts)
        socket_drops = {direction: effect.socket_drops for direction, effect in counts.effects.items()}
        for lines in (
            switch_disagreements(topology, counts),
            pause_disagreements(counts),
            class_disagreements(topology, network.classes, counts.classes, found.final, raw_frames, socket_drops),
        ):
            yield from (f"{phase.name}, {line}" for line in first_lines(lines))


def _phase_tables(
    network: NetworkSetup, phases: Sequence[Phase], measured: Sequence[Measured]
) -> dict[str, list[dict[str, Any]]]:
    """Of any system: what links carried, packets by class, and what happened when."""
    tables: dict[str, list[dict[str, Any]]] = {"links": [], "packet_classes": [], "timeline": []}
    for phase, found in zip(phases, measured, strict=True):
        rows: Mapping[str, Iterable[Mapping[str, Any]]] = {
            "links": ({**row, "load": _load(network.topology, found, row)} for row in found.links if row["packets"]),
            "packet_classes": class_rows(network.classes, found.counts.classes, found.final),
            "timeline": found.timeline,
        }
        for name, of_phase in rows.items():
            tables[name] += [{"phase": phase.name, **row} for row in of_phase]
    return tables


def _load(topology: Topology, found: Measured, row: Mapping[str, Any]) -> float | None:
    """What part of its rate, over all its channels, a direction used until the phase was complete."""
    direction = row["from"], row["to"]
    model = topology.link(*direction).model
    return found.carried.load(direction, model.rate_bps and model.rate_bps * model.channels)


def _sample_tables(phases: Sequence[Phase], measured: Sequence[Measured]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for phase, found in zip(phases, measured, strict=True):
        for name, rows in found.samples.items():
            tables.setdefault(name, []).extend({"phase": phase.name, **row} for row in rows)
    return tables


def run_phase(
    testbed: Testbed,
    phase: Phase,
    task: PointTask,
    on_progress: OnProgress = lambda bars: None,
    samples: SampleOrder | None = None,
    registers: Sequence[tuple[str, str]] = (),
    warm_up_us: int = 0,
    onlooker: Onlooker = NOBODY,
) -> tuple[Measured, FidelityReport]:
    """Run one phase on a network that is up."""
    asked = [OtherRequest.of(each) for each in phase.requests]
    answers = [testbed.add_job(each.request, each.service) for each in asked]
    jobs, plan = [answer["job"] for answer in answers], testbed.plan()
    # Some agents connect before they are ready, which their own counts contain.
    before = Counts.read(testbed)
    specs = list(phase.agents(answers))
    testbed.start_agents(specs)
    with onlooker.measuring(), testbed.meter() as meter:
        if not phase.waits:
            testbed.begin()
        timeline = Timeline(testbed, task.scale)
        carried = Carried(testbed, warm_up_us, timeline.measuring)
        sampler = _started(Sampler(testbed, samples, task.scale)) if samples else None
        faults = task.configuration.faults
        schedule(testbed, faults, task.scale, jobs, _both(timeline.fault, onlooker.fault_happens), timeline.begun_us)
        onlooker.phase_begins(phase, jobs)
        on_progress(phase.progress())
        try:
            specs += _events(testbed, phase, on_progress, _both(timeline.event, onlooker.agent_told))
            timeline.complete()
            carried.taken()
            testbed.cancel_calls()
            unsettled = settle(testbed, before, longest_stand_s(testbed.topology, faults, task.scale))
        except EndlessCircle as circle:
            if not phase.tells_unfinished:
                raise
            testbed.cancel_calls()
            unsettled = str(circle)
        except UserError as error:
            error.args = (f"{error}{queue_drops(Counts.of_links(testbed), testbed.topology, faults)}",)
            raise
    final = testbed.stop_agents()
    counts = Counts.read(testbed).since(before)
    cells = {(switch, name): testbed.registers(switch, name) for switch, name in registers}
    onlooker.phase_ended(phase)
    _delete(testbed, jobs, asked)
    measured = Measured(
        answers,
        final,
        counts,
        counts.link_rows(meter.achieved_rates(), task.scale.nominal_time),
        sampler.rows() if sampler else {},
        cells,
        testbed.coverage(),
        testbed.trace(),
        _when(phase, unsettled),
        carried.taken(),
        {(1 + jobs.index(spec.job), spec.name): spec.host for spec in specs},
        plan,
        timeline.rows(),
    )
    return measured, meter.report(*socket_counts(final))


def _delete(testbed: Testbed, jobs: Sequence[int], asked: Sequence[OtherRequest]) -> None:
    for job, each in zip(jobs, asked, strict=True):
        testbed.delete_job(job, each.service)


def _started(sampler: Sampler) -> Sampler:
    sampler.start()
    return sampler


def queue_drops(counts: Counts, topology: Topology, faults: Sequence[Fault] = ()) -> str:
    """Which queue dropped most packets, to end an error with: it may be why an agent waits in vain. "": none did."""
    drops = {direction: effect.queue_drops.packets for direction, effect in counts.effects.items()}
    most = max(drops, key=lambda direction: drops[direction], default=None)
    if most is None or not drops[most]:
        return ""
    sender, receiver = most
    lengths = [topology.link(sender, receiver).model.queue_packets]
    changes = [each for each in faults if isinstance(each, LinkChange) and set(each.link) == set(most)]
    lengths += [each.change.queue_packets for each in changes if each.change.queue_packets is not None]
    length = ", then ".join(map(str, lengths))
    return f"; the queue from {sender} to {receiver} (length {length}) dropped {drops[most]} packets"


def _when(phase: Phase, unsettled: str) -> str:
    return f"{'after' if phase.complete else 'before'} {phase.name} had ended, {unsettled}" if unsettled else ""


def _events(
    testbed: Testbed, phase: Phase, on_progress: OnProgress, note: Callable[[Mapping[str, Any]], None]
) -> list[AgentSpec]:
    """Hand the phase its agents' events until it is complete; the agents that were started because of them."""
    specs: list[AgentSpec] = []
    while not phase.complete:
        event = testbed.event()
        note(event)
        more = phase.take(event)
        if more is not None:
            specs += more
            testbed.start_agents(more)
            testbed.begin()
        on_progress(phase.progress())
    return specs


def _both(first: Callable[[Told], None], second: Callable[[Told], None]) -> Callable[[Told], None]:
    def tell(told: Told) -> None:
        first(told)
        second(told)

    return tell


def socket_counts(final: Mapping[tuple[int, str], Mapping[str, Any]]) -> tuple[int, int]:
    """Frames that the agents' sockets dropped, and of how many."""
    interfaces = [each for statistics in final.values() for each in statistics.get("interfaces", {}).values()]
    drops = sum(each["drops"] for each in interfaces)
    return drops, drops + sum(each["received_frames"] for each in interfaces)
