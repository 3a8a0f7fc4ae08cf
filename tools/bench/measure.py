"""What benchmarks share: processes, sizes, times and goals."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from gradbed.common.errors import UserError
from gradbed.common.resources import scratch_folder
from gradbed.common.store import cache_dir
from gradbed.experiments.tables.console import Columns, rows_table

# ---- Processes ----


ROOT = Path(__file__).resolve().parents[2]
"""The top of the checkout: where a process of a tool has to run, to find the module."""


def tool(module: str, *arguments: str) -> list[str]:
    """Return the command of a process that runs a module of tools; it has to run in ROOT."""
    return [sys.executable, "-m", module, *arguments]


# ---- Sizes ----


def sizes_of(text: str, form: str = "K") -> list[tuple[int, ...]]:
    """Read --sizes: positive integers of a form such as K:M, separated by commas. UserError for anything else."""
    parts = form.count(":") + 1
    try:
        found = [tuple(map(int, size.split(":"))) for size in text.split(",")]
        if all(len(size) == parts and min(size) > 0 for size in found):
            return found
    except ValueError:
        pass
    raise UserError(f"--sizes: {text!r} is not of the form {form},{form},... with positive whole numbers")


# ---- Times ----


def median_s(work: Callable[[], object], repetitions: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the median time of some repetitions in seconds, on a clock that counts seconds."""
    return statistics.median(span_s(work, clock) for _ in range(repetitions))


def span_s(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time that a call takes, in seconds."""
    start_s = clock()
    work()
    return clock() - start_s


class Stopwatch:
    """Wall and processor time since it was made, in seconds."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    @property
    def wall_s(self) -> float:
        """Wall time in seconds."""
        return time.perf_counter() - self._wall_s

    @property
    def cpu_s(self) -> float:
        """Processor time in seconds."""
        return time.process_time() - self._cpu_s


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache of compiled programs meanwhile."""
    former = cache_dir()
    with scratch_folder("bench") as empty:
        os.environ["GRADBED_CACHE"] = str(empty)
        try:
            yield
        finally:
            os.environ["GRADBED_CACHE"] = str(former)


# ---- Goals ----


@dataclass(frozen=True)
class Goal:
    """A limit of a measured number."""

    name: str
    wanted: float
    measured: float | None
    """None if there was nothing to compare with."""
    unit: str = ""
    at_most: bool = False
    """Whether the limit is an upper one."""
    by_processor_time: float | None = None
    """The same ratio for equal processor time."""

    @property
    def verdict(self) -> str:
        """met, missed, or not measured."""
        if self.measured is None:
            return "not measured"
        reached = self.measured <= self.wanted if self.at_most else self.measured >= self.wanted
        return "met" if reached else "missed"

    def number(self, value: float | None) -> str | None:
        """Format a number of this goal with its unit."""
        if value is None:
            return None
        return f"{value:,.0f} {self.unit}" if value >= 1000 else f"{value:.2f} {self.unit}"


def seconds_goal(wanted_s: float | None, measured_s: float) -> str | None:
    """Return a cell with the goal and whether it was met; None where there is no goal."""
    if wanted_s is None:
        return None
    return f"{wanted_s:g}: {Goal('', wanted_s, measured_s, at_most=True).verdict}"


def goals_table(goals: Iterable[Goal]) -> Table:
    """Return a table of goals and whether they were met."""
    columns: Columns = (
        ("what", lambda goal: goal.name),
        ("goal", lambda goal: f"{'<=' if goal.at_most else '>='} {goal.number(goal.wanted)}"),
        ("measured", lambda goal: goal.number(goal.measured)),
        ("by CPU time", lambda goal: goal.number(goal.by_processor_time)),
        ("verdict", lambda goal: goal.verdict),
    )
    return rows_table("goals", columns, goals, words=("what", "verdict"))


def exit_status(goals: Iterable[Goal]) -> int:
    """Return 1 if a goal was missed, otherwise 0."""
    return int(any(goal.verdict == "missed" for goal in goals))
