"""What it costs to look on: the same run with and without the live view, in turns."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.live.server import live_view
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.experiments.tables.console import make_console
from tools.bench.measure import Goal, Stopwatch, exit_status, goals_table

MOST = {"virtual": 1.10, "real": 1.05}
"""Of a run's time without the live view, by clock."""

REAL_SCALE = Scale(0.2)
TOPOLOGY, WORKERS, ROUNDS = "fat-tree:4", 8, 60


@dataclass(frozen=True)
class Times:
    """What a run took."""

    wall_s: float
    cpu_s: float


def run_bench_live(repetitions: int) -> int:
    """Measure and print a table; the real clock as root alone. Exit status 0; 1 if a goal is missed."""
    clocks = ("virtual", "real") if os.geteuid() == 0 else ("virtual",)
    with live_view() as observer:
        goals = [_goal(clock, repetitions, observer) for clock in clocks]
    make_console().print(goals_table(goals))
    return exit_status(goals)


def _goal(clock: str, repetitions: int, observer: TrialObserver) -> Goal:
    _run(clock, NO_OBSERVER)  # fills the caches
    alone, observed = [], []
    for _ in range(repetitions):
        alone.append(_run(clock, NO_OBSERVER))
        observed.append(_run(clock, observer))
    # What a sandbox does is not this process's time.
    by_cpu = _ratio(observed, alone, lambda times: times.cpu_s) if clock == "virtual" else None
    name = f"{TOPOLOGY}, {clock} clock: time with --live over time without"
    wall = _ratio(observed, alone, lambda times: times.wall_s)
    return Goal(name, MOST[clock], wall, at_most=True, by_processor_time=by_cpu)


def _ratio(these: list[Times], those: list[Times], of: Callable[[Times], float]) -> float:
    return statistics.median(map(of, these)) / statistics.median(map(of, those))


def _run(clock: str, observer: TrialObserver) -> Times:
    """Run the trial, and return what it took. UserError if the run breaks."""
    system = find_system(DEFAULT_SYSTEM)
    configuration = system.configuration.model_validate(
        {"clock": clock, "topology": {"kind": TOPOLOGY}, "workload": {"workers": WORKERS, "rounds": ROUNDS}}
    )
    watch = Stopwatch()
    run_single_trial(DEFAULT_SYSTEM, configuration, REAL_SCALE if clock == "real" else Scale(), observer=observer)
    return Times(watch.wall_s, watch.cpu_s)
