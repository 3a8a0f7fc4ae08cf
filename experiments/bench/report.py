"""The goals of benchmarks, and whether they were met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from gradbed.experiments.tables.rows import Columns, rows_table


@dataclass(frozen=True)
class Goal:
    """A number that should be at least (or, if at_most, at most) so large.

    measured None: there was nothing to compare with. by_processor_time: the same ratio for equal processor time.
    """

    name: str
    wanted: float
    measured: float | None
    unit: str = ""
    at_most: bool = False
    by_processor_time: float | None = None

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        reached = self.measured <= self.wanted if self.at_most else self.measured >= self.wanted
        return "met" if reached else "missed"

    def number(self, value: float | None) -> str | None:
        if value is None:
            return None
        return f"{value:,.0f} {self.unit}" if value >= 1000 else f"{value:.2f} {self.unit}"


def seconds_goal(wanted_s: float | None, measured_s: float) -> str | None:
    """A cell: the goal, and whether it was met; None where there is none."""
    if wanted_s is None:
        return None
    return f"{wanted_s:g}: {Goal('', wanted_s, measured_s, at_most=True).verdict}"


def goals_table(goals: Iterable[Goal]) -> Table:
    columns: Columns = (
        ("what", lambda goal: goal.name),
        ("goal", lambda goal: f"{'<=' if goal.at_most else '>='} {goal.number(goal.wanted)}"),
        ("measured", lambda goal: goal.number(goal.measured)),
        ("by CPU time", lambda goal: goal.number(goal.by_processor_time)),
        ("verdict", lambda goal: goal.verdict),
    )
    return rows_table("goals", columns, goals, words=("what", "verdict"))


def exit_status(goals: Iterable[Goal]) -> int:
    """1 if a goal was missed."""
    return int(any(goal.verdict == "missed" for goal in goals))
