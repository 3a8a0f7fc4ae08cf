"""Measure the wall time and processor time of large trials on the virtual clock."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.phases import Phase
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.topo.registry import parse_topology
from tools.bench.measure import seconds_goal
from tools.bench.scale_trials import SCALE_TRIALS, ScaleTrial

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Spent:
    """Wall time and processor time."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class ScaleResult:
    """What a trial took."""

    trial: ScaleTrial
    hosts: int
    whole: Spent
    """From the configuration to the checked result."""
    round: Spent
    """From all agents ready to all agents done."""
    hops: int
    """Packets that links delivered."""
    bytes: int
    """Peak memory of the process until then."""

    @property
    def judged(self) -> Spent:
        """What the goals are for."""
        return self.round if self.trial.judges_round else self.whole


class _Watch(TrialObserver):
    """Records when agents began, and when the last event arrived."""

    def __init__(self) -> None:
        self._began: list[Spent] = []
        self._told: list[Spent] = []

    def on_phase_start(self, phase: Phase, jobs: Sequence[int]) -> None:
        self._began.append(_now())

    def on_agent_event(self, event: Mapping[str, Any]) -> None:
        self._told.append(_now())

    @property
    def spent(self) -> Spent:
        if not self._began or not self._told:
            return Spent(0.0, 0.0)
        first, last = self._began[0], self._told[-1]
        return Spent(last.wall_s - first.wall_s, last.cpu_s - first.cpu_s)


def _now() -> Spent:
    return Spent(time.perf_counter(), time.process_time())


def measured(trial: ScaleTrial, small: bool = False, threads: int = 1) -> ScaleResult:
    """Run a trial. UserError if it breaks or its checks fail.

    Args:
        trial: The trial.
        small: Whether to run its small form.
        threads: Used where the system can be simulated on several.
    """
    began = _now()
    values = {"clock": "virtual", **trial.configuration}
    if small:
        values |= {section: {**values[section], **fields} for section, fields in trial.shrunk.items()}
    system = find_system(trial.system)
    configuration = system.configuration.model_validate(values)
    watch = _Watch()
    threads = threads if system.switches.quiet else 1
    stored = run_single_trial(trial.system, configuration, Scale(), observer=watch, threads=threads)
    ended = _now()
    if stored.failures:
        raise UserError(f"{trial.name}: {stored.failures[0]}")
    return ScaleResult(
        trial,
        hosts=len(parse_topology(configuration.topology.kind).hosts),
        whole=Spent(ended.wall_s - began.wall_s, ended.cpu_s - began.cpu_s),
        round=watch.spent,
        hops=sum(int(row["packets"]) for row in stored.tables.get("links", ())),
        bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def scale_table(rows: Sequence[ScaleResult], small: bool = False) -> Any:
    """Return the table; without goals for the small forms."""

    def goal(wanted_s: float | None, found_s: float) -> str | None:
        return None if small else seconds_goal(wanted_s, found_s)

    columns: Columns = (
        ("trial", lambda row: row.trial.name),
        ("hosts", lambda row: f"{row.hosts:,}"),
        ("packet hops", lambda row: f"{row.hops:,}"),
        ("whole s", lambda row: f"{row.whole.wall_s:.1f}"),
        ("whole CPU s", lambda row: f"{row.whole.cpu_s:.1f}"),
        ("round s", lambda row: f"{row.round.wall_s:.1f}"),
        ("round CPU s", lambda row: f"{row.round.cpu_s:.1f}"),
        ("MB", lambda row: f"{row.bytes / MEBIBYTE:,.0f}"),
        ("goal s", lambda row: goal(row.trial.goal_s, row.judged.wall_s)),
        ("goal CPU s", lambda row: goal(row.trial.goal_cpu_s, row.judged.cpu_s)),
    )
    title = "Large trials on the virtual clock; round: from all agents ready to all done"
    return rows_table(title, columns, rows, words=("trial",))


def run_bench_scale(names: Sequence[str], small: bool, threads: int = 1) -> int:
    """Run the trials of these names, or all, and print what each took as soon as it is done.

    Returns:
        1 if a goal is missed, otherwise 0.
    """
    known = {trial.name: trial for trial in SCALE_TRIALS}
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no trial {unknown[0]!r}: {', '.join(known)}")
    console, rows = make_console(), []
    for name in names or known:
        with console.status(name):
            row = measured(known[name], small, threads)
        rows.append(row)
        console.print(
            f"{name}: {row.whole.wall_s:.1f} s ({row.whole.cpu_s:.1f} s of the processor), of these the round "
            f"{row.round.wall_s:.1f} s ({row.round.cpu_s:.1f} s)",
            soft_wrap=True,
        )
    console.print(scale_table(rows, small))
    return int(not small and any(map(_missed, rows)))


def _missed(row: ScaleResult) -> bool:
    goals = ((row.trial.goal_s, row.judged.wall_s), (row.trial.goal_cpu_s, row.judged.cpu_s))
    return any(wanted_s is not None and found_s > wanted_s for wanted_s, found_s in goals)
