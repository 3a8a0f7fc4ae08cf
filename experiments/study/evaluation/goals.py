"""What a study is held to: do its trials keep to the bounds that figures draw, and did it reach its goals?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.table import Table

from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.definition import FigureSection, GoalSection, StudyHead
from gradbed.experiments.study.evaluation.kinds import panels_of
from gradbed.experiments.tables.console import Columns, rows_table
from gradbed.experiments.tables.metric import confidence_interval, value_words

# ---- Bounds ----


ROUNDING = 1e-6
"""Of sums and linear programs; a share."""


def crossings(results: StudyResults, figures: Mapping[str, FigureSection]) -> dict[str, list[str]]:
    """Return, by figure, a line for each trial above its bound; figures without such trials are left out.

    Trials that failed or are invalid are not compared.
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
    for trial in (*results.trials, *results.other_clock):
        y, bound = trial.row.get(section.y), trial.row.get(section.bound)
        if trial.is_good and y is not None and bound is not None and y > bound * (1 + ROUNDING):
            lines[f"{trial.place_text}{section.y} is {y:g}, above its bound ({section.bound}), {bound:g}"] = None
    return list(lines)


# ---- Goals ----

FEWEST = 3
"""Number of repetitions on either clock from which their intervals are compared."""


KEPT_UP = ("valid", "simulated")


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
    """Return the outcome of each goal at every place that it is for, in the order of the study."""
    places: dict[str, list[TrialRecord]] = {}
    for trial in (*results.trials, *results.other_clock):
        place = ", ".join(f"{path.rsplit('.', 1)[-1]}={value_words(v)}" for path, v in trial.coordinates.items())
        places.setdefault(place, []).append(trial)
    return [
        _judge(name, goal, place, trials)
        for name, goal in head.goals.items()
        for place, trials in places.items()
        if all(trials[0].coordinates[path] == value for path, value in goal.where.items())
    ]


def _judge(name: str, goal: GoalSection, place: str, trials: Sequence[TrialRecord]) -> Judged:
    own, beside = (
        [trial for trial in trials if not trial.other_clock],
        [trial for trial in trials if trial.other_clock],
    )
    values, others = _values(goal, own), _values(goal, beside)
    value, agrees = fmean(values) if values else None, False
    if goal.in_real_time:
        value = fmean(others) / value if others and value else None
        agrees = min(len(values), len(others)) >= FEWEST and _overlap(values, others)
    limits = ("at least", goal.at_least), ("at most", goal.at_most)
    wanted = ", ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
    verdict = _verdict(goal, value, trials if goal.in_real_time else own)
    return Judged(name, place, value, wanted, "met" if agrees and verdict in ("missed", "exceeded") else verdict)


def _values(goal: GoalSection, trials: Sequence[TrialRecord]) -> list[float]:
    return [value for trial in trials if (value := _value(goal, trial)) is not None]


def _overlap(values: Sequence[float], others: Sequence[float]) -> bool:
    one, other = confidence_interval(values), confidence_interval(others)
    return one.low <= other.high and other.low <= one.high


def _value(goal: GoalSection, trial: TrialRecord) -> float | None:
    value, whole = trial.row.get(goal.metric), 1.0 if goal.over is None else trial.row.get(goal.over)
    return None if value is None or not whole else float(value) / float(whole)


def _verdict(goal: GoalSection, value: float | None, trials: Sequence[TrialRecord]) -> str:
    kept_up = all(trial.row["verdict"] in KEPT_UP for trial in trials)
    if any(trial.failures for trial in trials):
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
