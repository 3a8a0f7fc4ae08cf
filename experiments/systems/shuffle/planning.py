"""Random instances of a shuffle, and trials that compute schedules and send nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import mean

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.messages import ShuffleSettings
from gradbed.controller.systems.shuffle.scheduling.bounds import bounds
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, epochs
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, check_schedule, with_trees_chosen
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.shuffle.checks import planned_wait_failures
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration
from gradbed.experiments.systems.shuffle.phase import Parts, first_parts, timing
from gradbed.experiments.tables.metric import Value
from gradbed.experiments.validity.verdict import ValidityReport
from gradbed.hosts.systems.shuffle.samples import SampleSource
from gradbed.topo.graph import Topology

# ---- Random instances ----


@dataclass(frozen=True)
class RandomInstances:
    """The random part of a trial."""

    source: SampleSource
    first: Parts
    """Samples that each worker has at first."""
    instances: Iterator[ShuffleInstance]
    """The shuffle before each epoch; endless."""


def draw(task: TrialTask[ShuffleConfiguration], topology: Topology) -> RandomInstances:
    """Draw the samples and shuffles of a trial; equal seeds give equal results."""
    shuffle, samples = task.configuration.shuffle, task.configuration.samples
    source = samples.source(task.seed)
    workers, master = choose_hosts(topology, shuffle.workers, shuffle.scheduler)
    sizes_bytes = source.sizes_bytes(samples.samples)
    first = first_parts(source, samples.samples, len(workers), samples.first, task.seed)
    instances = epochs(workers, sizes_bytes, samples.storage, task.seed, samples.replacement, master, first)
    return RandomInstances(source, first, instances)


def choose_hosts(topology: Topology, workers: int, scheduler: str) -> tuple[list[str], str | None]:
    """Return the workers and the master.

    Workers (0: all hosts) are spread evenly over the hosts; the master, if the scheduler takes one, is the last host.
    """
    names = [host.name for host in topology.hosts]
    master = names.pop() if scheduler_named(scheduler).needs_master else None
    if workers > len(names):
        raise UserError(f"{workers} workers need as many hosts, {topology.name} has {len(names)} for them")
    workers = workers or len(names)
    return [names[place * len(names) // workers] for place in range(workers)], master


def scheduler_timing(task: TrialTask[ShuffleConfiguration], topology: Topology, instance: ShuffleInstance) -> Timing:
    """Return the times by which a scheduler lets packets wait for loans."""
    shuffle = task.configuration.shuffle
    threshold_us = task.scale.time_us(shuffle.threshold_us)
    return timing(topology, instance, shuffle.bits, shuffle.fragment_bytes, threshold_us)


# ---- Trials without packets ----


class PlanOnlyTrial(Trial[ShuffleConfiguration]):
    """A trial that computes schedules and sends nothing."""

    def __init__(self, task: TrialTask[ShuffleConfiguration]) -> None:
        super().__init__(task)
        self.network = NetworkSetup(self.topology, {}, ShuffleSettings())

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        shuffles = islice(draw(self.task, self.topology).instances, self.configuration.shuffle.shuffles)
        failures: list[str] = []
        found = [self._planned(number, instance, failures) for number, instance in enumerate(shuffles, start=1)]
        return TrialResult(metrics=means(found), failures=failures, validity=ValidityReport(verdict="simulated"))

    def _planned(self, number: int, instance: ShuffleInstance, failures: list[str]) -> dict[str, Value]:
        """Return the metrics of one shuffle; its schedule is checked like those that are sent."""
        task, shuffle, topology = self.task, self.configuration.shuffle, self.topology
        timing = scheduler_timing(task, topology, instance)
        scheduler = scheduler_named(shuffle.scheduler, timing)
        begun_s = time.process_time()
        trees = Trees(topology, instance.hosts, shuffle.trees)
        schedule = scheduler.schedule(instance, trees, task.seed + number)
        schedule = with_trees_chosen(schedule, instance, trees, shuffle.tree_choice, task.seed + number)
        took_s = time.process_time() - begun_s
        check_schedule(instance, schedule, topology)
        row = planned_row(instance, schedule, trees)
        waits = planned_wait_failures(schedule, timing.host_us, timing.hop_delay_us, timing.threshold_us)
        failures += [*below_bound(f"shuffle {number}", row), *(f"shuffle {number}, {line}" for line in waits)]
        return {**row, "schedule_s": took_s}


def planned_row(instance: ShuffleInstance, schedule: Schedule, trees: Trees) -> dict[str, Value]:
    """Return what is known of a shuffle before anything is sent."""
    carrying = [each for each in schedule.transmissions if each.lent_for is None]
    demands = len(instance.demands)
    bound = bounds(instance, trees)
    return {
        "hops": schedule.hops,
        "bound_hops": bound.best,
        "packet_bound_hops": bound.packets,
        "cut_bound_hops": bound.cuts,
        "hops_per_sample": schedule.hops / demands if demands else None,
        "samples_per_packet": demands / len(carrying) if carrying else None,
        "packets_per_sample": len(schedule.transmissions) / instance.samples,
        "loans": len(schedule.transmissions) - len(carrying),
    }


def below_bound(name: str, row: Mapping[str, Value]) -> list[str]:
    """Return a line if a shuffle takes fewer hops than the lower bound, which is an error in the program."""
    hops, least = row["hops"], row["bound_hops"]
    if isinstance(hops, int) and isinstance(least, int) and hops < least:
        return [f"{name}, {hops} hops are less than the bound, {least}"]
    return []


def means(rows: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """Return the mean of each column over the shuffles of a trial; None where none has a value."""
    found: dict[str, Value] = {}
    for name in rows[0]:
        values = [float(value) for row in rows if (value := row[name]) is not None]
        found[name] = mean(values) if values else None
    return found
