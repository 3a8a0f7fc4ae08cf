"""Schedules that are computed and not sent: their hops beside the lower bounds, and their computation time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import mean

from gradbed.controller.systems.shuffle.messages import ShuffleSettings
from gradbed.controller.systems.shuffle.scheduling.bounds import bounds
from gradbed.controller.systems.shuffle.scheduling.checking import check_schedule
from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.controller.systems.shuffle.scheduling.tree_choice import with_trees_chosen
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration
from gradbed.experiments.systems.shuffle.drawn import draw, scheduler_timing
from gradbed.experiments.systems.shuffle.waits import planned_wait_failures
from gradbed.experiments.tables.metric import Value
from gradbed.experiments.validity.verdict import ValidityReport


class PlanOnlyTrial(Trial[ShuffleConfiguration]):
    """A trial that computes schedules and sends nothing."""

    def __init__(self, task: TrialTask[ShuffleConfiguration]) -> None:
        super().__init__(task)
        self.network = NetworkSetup(self.topology, {}, ShuffleSettings())

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        shuffles = islice(draw(self.task, self.topology).instances, self.configuration.shuffle.shuffles)
        failures: list[str] = []
        found = [self._planned(number, instance, failures) for number, instance in enumerate(shuffles, start=1)]
        return TrialResult(metrics=means(found), failures=failures, validity=ValidityReport(verdict="model"))

    def _planned(self, number: int, instance: Instance, failures: list[str]) -> dict[str, Value]:
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


def planned_row(instance: Instance, schedule: Schedule, trees: Trees) -> dict[str, Value]:
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
