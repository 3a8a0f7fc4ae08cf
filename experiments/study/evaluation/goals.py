"""What a study is held to: do its points keep to the bounds that figures draw, and did it reach its goals?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.table import Table

from gradbed.experiments.plotting.series import FEWEST
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_folder import DonePoint
from gradbed.experiments.study.definition import FigureSection, GoalSection, StudyHead
from gradbed.experiments.study.evaluation.kinds import panels_of
from gradbed.experiments.tables.console import Columns, rows_table
from gradbed.experiments.tables.intervals import confidence_interval
from gradbed.experiments.tables.words import value_words

# ---- Bounds ----


ROUNDING = 1e-6
"""Of sums and linear programs; a share."""


def crossings(results: StudyResults, figures: Mapping[str, FigureSection]) -> dict[str, list[str]]:
    """By figure, a line for each of its points that lies above its bound; figures without such points are left out.

    Points that failed or are invalid claim nothing.
    """
    found = {
        name: list(dict.fromkeys(line for panel in panels_of(section) for line in _above(results, panel)))
        for name, section in figures.items()
    }
    return {name: lines for name, lines in found.items() if lines}


def _above(results: StudyResults, section: FigureSection) -> list[str]:
    if section.bound is None:
        return []
    lines: dict[str, None] = {}
    for point in (*results.points, *results.other_clock):
        y, bound = point.row.get(section.y), point.row.get(section.bound)
        if point.stored.is_good and y is not None and bound is not None and y > bound * (1 + ROUNDING):
            lines[f"{point.place_text}{section.y} is {y:g}, above its bound ({section.bound}), {bound:g}"] = None
    return list(lines)


# ---- Goals ----


KEPT_UP = ("valid", "model")


@dataclass(frozen=True)
class Judged:
    """A goal at one place of the sweep. value: None where there is none."""

    goal: str
    place: str
    value: float | None
    wanted: str
    verdict: str
    """met; missed, exceeded or wrong, which are failures; open: the machine was the limit, or nothing is known."""

    @property
    def has_failed(self) -> bool:
        return self.verdict in ("missed", "exceeded", "wrong")

    @property
    def words(self) -> str:
        measured = "none" if self.value is None else f"{self.value:g}"
        return f"goal {self.goal}, {self.place or 'alone'}: {measured}, {self.wanted}: {self.verdict}"


def judged(head: StudyHead, results: StudyResults) -> list[Judged]:
    """Every goal at every place that it is for, in the order of the study."""
    places: dict[str, list[DonePoint]] = {}
    for point in (*results.points, *results.other_clock):
        place = ", ".join(f"{path.rsplit('.', 1)[-1]}={value_words(v)}" for path, v in point.coordinates.items())
        places.setdefault(place, []).append(point)
    return [
        _judge(name, goal, place, points)
        for name, goal in head.goals.items()
        for place, points in places.items()
        if all(points[0].coordinates[path] == value for path, value in goal.where.items())
    ]


def _judge(name: str, goal: GoalSection, place: str, points: Sequence[DonePoint]) -> Judged:
    own, beside = (
        [point for point in points if not point.other_clock],
        [point for point in points if point.other_clock],
    )
    values, others = _values(goal, own), _values(goal, beside)
    value, agrees = fmean(values) if values else None, False
    if goal.in_real_time:
        value = fmean(others) / value if others and value else None
        agrees = min(len(values), len(others)) >= FEWEST and _overlap(values, others)
    limits = ("at least", goal.at_least), ("at most", goal.at_most)
    wanted = ", ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
    verdict = _verdict(goal, value, points if goal.in_real_time else own)
    return Judged(name, place, value, wanted, "met" if agrees and verdict in ("missed", "exceeded") else verdict)


def _values(goal: GoalSection, points: Sequence[DonePoint]) -> list[float]:
    return [value for point in points if (value := _value(goal, point)) is not None]


def _overlap(values: Sequence[float], others: Sequence[float]) -> bool:
    one, other = confidence_interval(values), confidence_interval(others)
    return one.low <= other.high and other.low <= one.high


def _value(goal: GoalSection, point: DonePoint) -> float | None:
    value, whole = point.row.get(goal.metric), 1.0 if goal.over is None else point.row.get(goal.over)
    return None if value is None or not whole else float(value) / float(whole)


def _verdict(goal: GoalSection, value: float | None, points: Sequence[DonePoint]) -> str:
    kept_up = all(point.row["verdict"] in KEPT_UP for point in points)
    if any(point.stored.failures for point in points):
        return "wrong"
    if value is None:
        return "open"
    if goal.at_most is not None and value > goal.at_most * (1 + ROUNDING):
        return "exceeded" if kept_up or not goal.in_real_time else "open"
    if goal.at_least is None or value >= goal.at_least:
        return "met"
    return "missed" if kept_up else "open"


COLUMNS: Columns = (
    ("goal", lambda row: row.goal),
    ("place", lambda row: row.place),
    ("measured", lambda row: None if row.value is None else f"{row.value:.3f}"),
    ("wanted", lambda row: row.wanted),
    ("verdict", lambda row: row.verdict),
)


def goals_table(rows: Sequence[Judged]) -> Table:
    return rows_table("goals", COLUMNS, rows, words=("goal", "place", "wanted", "verdict"))
