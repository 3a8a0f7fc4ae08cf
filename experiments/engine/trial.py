"""The one engine: runs a trial of any system, from its network coming up to its last count.

A trial has phases, one after the other on the same network. In each the service of the system is asked for the
phase's jobs, their agents start, and once all are ready they begin; the phase takes in what they tell until it is
complete. What switches, links and agents counted in between is the system's to make sense of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from gradbed.common.errors import EndlessCircle, UserError
from gradbed.emulation.layout import link_seed
from gradbed.experiments.captures import capturing, ordered
from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.conservation.checks import (
    class_disagreements,
    class_rows,
    pause_disagreements,
    switch_disagreements,
    uncounted_hosts,
)
from gradbed.experiments.conservation.counts import Counts, first_lines
from gradbed.experiments.engine.faults import Timeline, schedule
from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.engine.sampling import LinkThroughput, Sampler
from gradbed.experiments.engine.settling import longest_stand_s, settle
from gradbed.experiments.phases import (
    AgentResults,
    NetworkCounts,
    Observations,
    OtherRequest,
    Phase,
    PhaseResult,
    Progress,
    TrialResult,
)
from gradbed.experiments.results.run_folder import write_network
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.runtimes.loading import Loading, loading_runtime
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.system import System
from gradbed.experiments.validity.verdict import ValidityReport, worst_report
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    pass

Argument = TypeVar("Argument")

OnProgress = Callable[[Sequence[Progress]], None]
"""Called after every event of an agent."""


def run_trial(
    system: System,
    task: TrialTask,
    on_progress: OnProgress = lambda bars: None,
    observer: TrialObserver = NO_OBSERVER,
) -> TrialResult:
    """Run one trial; one without phases is computed, and no network comes up.

    On the real clock: in a sandbox, as root.

    Raises:
        UserError: Something is wrong that the user can put right.
    """
    with loading_runtime(task) as loading:
        trial = system.trial(task)
        if not trial.phases:
            return trial.result(())
        measured, reports = [], []
        on_each = _both(on_progress, observer.on_progress)
        with (
            _open_runtime(system, trial.network, task, loading) as runtime,
            capturing(runtime.backend, ordered(task.capture, runtime.backend, trial.network.capture), task.folder),
            ExitStack() as stack,
        ):
            runtime.backend.count_classes([each.words for each in trial.network.classes])
            observer.on_network_up(runtime, trial.network, task, system.name)
            stack.callback(observer.on_network_stop)
            for phase in trial.phases:
                setup = trial.network
                found, report = run_phase(
                    runtime, phase, task, on_each, setup.samples, setup.registers, setup.warm_up_us, observer
                )
                measured.append(found)
                reports.append(report)
    result = trial.result(measured)
    topology = trial.network.topology
    plans = {
        phase.name: found.network.plan
        for phase, found in zip(trial.phases, measured, strict=True)
        if found.network.plan
    }
    write_network(task.folder, topology, plans)
    return replace(
        result,
        validity=worst_report(reports),
        failures=[*_failures(trial.network, task, trial.phases, measured), *result.failures],
        decisions={
            **result.decisions,
            # The n-th packet of a direction has the n-th draw of its generator, whatever the time.
            "link_seeds": {f"{link.a.node}-{link.b.node}": link_seed(task.seed, link) for link in topology.links},
        },
        tables={
            **result.tables,
            **_sample_tables(trial.phases, measured),
            **_phase_tables(trial.network, trial.phases, measured),
        },
    )


def _open_runtime(system: System, network: NetworkSetup, task: TrialTask, loading: Loading | None) -> Runtime:
    """Return the network of a trial, on the clock that its configuration names."""
    if task.configuration.clock == "virtual":
        from gradbed.experiments.runtimes.virtual import VirtualRuntime

        return VirtualRuntime(system, network, task)
    from gradbed.experiments.runtimes.real import RealRuntime

    return RealRuntime(system, network, task, loading=loading)


def _failures(
    network: NetworkSetup, task: TrialTask, phases: Sequence[Phase], measured: Sequence[PhaseResult]
) -> Iterator[str]:
    """Yield failures that any system can have.

    They are phases that did not come to rest, and packets that are missing or too many, by switch or by class.
    """
    yield from (found.network.unsettled for found in measured if found.network.unsettled)
    for phase, found in zip(phases, measured, strict=True):
        if found.network.unsettled:
            continue
        topology, counts = network.topology, found.network.counts
        raw_frames = uncounted_hosts(topology, task.configuration.faults, found.agents.hosts)
        socket_drops = {direction: effect.socket_drops for direction, effect in counts.effects.items()}
        for lines in (
            switch_disagreements(topology, counts),
            pause_disagreements(counts),
            class_disagreements(
                topology, network.classes, counts.classes, found.agents.final, raw_frames, socket_drops
            ),
        ):
            yield from (f"{phase.name}, {line}" for line in first_lines(lines))


def _phase_tables(
    network: NetworkSetup, phases: Sequence[Phase], measured: Sequence[PhaseResult]
) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of any system: what links carried, packets by class, and what happened when."""
    tables: dict[str, list[dict[str, Any]]] = {"links": [], "packet_classes": [], "timeline": []}
    for phase, found in zip(phases, measured, strict=True):
        rows: Mapping[str, Iterable[Mapping[str, Any]]] = {
            "links": (
                {**row, "load": _load(network.topology, found, row)} for row in found.network.links if row["packets"]
            ),
            "packet_classes": class_rows(network.classes, found.network.counts.classes, found.agents.final),
            "timeline": found.observed.timeline,
        }
        for name, of_phase in rows.items():
            tables[name] += [{"phase": phase.name, **row} for row in of_phase]
    return tables


def _load(topology: Topology, found: PhaseResult, row: Mapping[str, Any]) -> float | None:
    """Return the share of its rate, over all its channels, that a direction used until the phase was complete."""
    direction = row["from"], row["to"]
    model = topology.link(*direction).model
    return found.network.link_bytes.load(direction, model.rate_bps and model.rate_bps * model.channels)


def _sample_tables(phases: Sequence[Phase], measured: Sequence[PhaseResult]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for phase, found in zip(phases, measured, strict=True):
        for name, rows in found.observed.samples.items():
            tables.setdefault(name, []).extend({"phase": phase.name, **row} for row in rows)
    return tables


def run_phase(
    runtime: Runtime,
    phase: Phase,
    task: TrialTask,
    on_progress: OnProgress = lambda bars: None,
    samples: SampleOrder | None = None,
    registers: Sequence[tuple[str, str]] = (),
    warm_up_us: int = 0,
    observer: TrialObserver = NO_OBSERVER,
) -> tuple[PhaseResult, ValidityReport]:
    """Run one phase on a network that is up."""
    asked = [OtherRequest.of(each) for each in phase.requests]
    answers = [runtime.add_job(each.request, each.service) for each in asked]
    jobs, plan = [answer["job"] for answer in answers], runtime.plan()
    # Some agents connect before they are ready, which their own counts contain.
    before = Counts.read(runtime)
    specs = list(phase.agents(answers))
    runtime.agents.start(specs)
    with observer.measuring(), runtime.meter() as meter:
        if not phase.waits:
            runtime.begin()
        timeline = Timeline(runtime, task.scale)
        throughput = LinkThroughput(runtime, warm_up_us, timeline.measuring)
        sampler = _started(Sampler(runtime, samples, task.scale)) if samples else None
        faults = task.configuration.faults
        schedule(runtime, faults, task.scale, jobs, _both(timeline.fault, observer.on_fault), timeline.begun_us)
        observer.on_phase_start(phase, jobs)
        on_progress(phase.progress())
        try:
            specs += _events(runtime, phase, on_progress, _both(timeline.event, observer.on_agent_event))
            timeline.complete()
            throughput.measured()
            runtime.cancel_calls()
            unsettled = settle(runtime, before, longest_stand_s(runtime.topology, faults, task.scale))
        except EndlessCircle as circle:
            if not phase.tells_unfinished:
                raise
            runtime.cancel_calls()
            unsettled = str(circle)
        except UserError as error:
            error.args = (f"{error}{queue_drops(Counts.of_links(runtime), runtime.topology, faults)}",)
            raise
    final = runtime.stop_agents()
    counts = Counts.read(runtime).since(before)
    cells = {(switch, name): runtime.registers(switch, name) for switch, name in registers}
    observer.on_phase_end(phase)
    _delete(runtime, jobs, asked)
    measured = PhaseResult(
        AgentResults(answers, final, {(1 + jobs.index(spec.job), spec.name): spec.host for spec in specs}),
        NetworkCounts(
            counts,
            counts.link_rows(meter.achieved_rates(), task.scale.nominal_time),
            throughput.measured(),
            cells,
            plan,
            _when(phase, unsettled),
        ),
        Observations(sampler.rows() if sampler else {}, runtime.coverage(), runtime.trace(), timeline.rows()),
    )
    return measured, meter.report(*socket_counts(final))


def _delete(runtime: Runtime, jobs: Sequence[int], asked: Sequence[OtherRequest]) -> None:
    for job, each in zip(jobs, asked, strict=True):
        runtime.delete_job(job, each.service)


def _started(sampler: Sampler) -> Sampler:
    sampler.start()
    return sampler


def queue_drops(counts: Counts, topology: Topology, faults: Sequence[Fault] = ()) -> str:
    """Return which queue dropped most packets, to end an error with; "" if none did.

    It may be why an agent waits in vain.
    """
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
    runtime: Runtime, phase: Phase, on_progress: OnProgress, note: Callable[[Mapping[str, Any]], None]
) -> list[AgentSpec]:
    """Hand the phase its agents' events until it is complete; return the agents that were started because of them."""
    specs: list[AgentSpec] = []
    while not phase.complete:
        event = runtime.event()
        note(event)
        more = phase.take(event)
        if more is not None:
            specs += more
            runtime.agents.start(more)
            runtime.begin()
        on_progress(phase.progress())
    return specs


def _both(first: Callable[[Argument], None], second: Callable[[Argument], None]) -> Callable[[Argument], None]:
    """Return a callback that calls both."""

    def call(argument: Argument) -> None:
        first(argument)
        second(argument)

    return call


def socket_counts(final: Mapping[tuple[int, str], Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many frames the agents' sockets dropped, and of how many."""
    interfaces = [each for statistics in final.values() for each in statistics.get("interfaces", {}).values()]
    drops = sum(each["drops"] for each in interfaces)
    return drops, drops + sum(each["received_frames"] for each in interfaces)
