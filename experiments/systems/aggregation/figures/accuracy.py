"""Figure 7: test accuracy against the time spent on communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.aggregation.figures.modes import NUMBERS, mode
from experiments.tables.metric import Metric

TARGET = 0.9
"""Accuracy to reach."""

Course = Sequence[tuple[float, float]]
"""(milliseconds of communication so far, accuracy) after each round."""


def courses(results: StudyResults) -> Mapping[str, Course]:
    """By digest of the point."""
    rounds: dict[str, list[Mapping[str, Any]]] = {}
    for row in results.table("rounds"):
        rounds.setdefault(row["digest"], []).append(row)
    found = {}
    for digest, rows in rounds.items():
        # Places of a sweep that share a point have its rows once each.
        in_order = sorted({row["round"]: row for row in rows}.values(), key=lambda row: row["round"])
        times = accumulate(1e3 * row["round_time_s"] for row in in_order)
        found[digest] = [(time, float(row["accuracy"])) for time, row in zip(times, in_order, strict=True)]
    return found


def time_to_accuracy_ms(course: Course, target: float = TARGET) -> float | None:
    """None if it is never reached."""
    return next((time for time, accuracy in course if accuracy >= target), None)


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS. Left: the first repetition; right: when each reaches the target."""
    of_point = courses(results)
    names = list(dict.fromkeys(mode(point.row) for point in results.points))
    places = {name: float(index) for index, name in enumerate(names)}
    reached = results.derived_series(mode, lambda row: time_to_accuracy_ms(of_point[row["digest"]]), mode)
    with figure(width_in=4.4, height_in=3.5, columns=2) as (made, axes):
        for point in results.points:
            if point.repetition == 0:
                name = mode(point.row)
                times, accuracies = zip(*of_point[point.row["digest"]], strict=True)
                axes[0].plot(
                    times, [100 * a for a in accuracies], color=COLOURS[NUMBERS[name]], linewidth=1.2, label=name
                )
        axes[0].axhline(100 * TARGET, color="grey", linestyle="--", linewidth=0.8)
        axes[0].set_xlabel("communication so far (ms)")
        axes[0].set_ylabel("test accuracy (%)")
        axes[0].set_xlim(left=0)
        for name, points in reached.items():
            draw_series(axes[1], points, label=None, number=NUMBERS[name], x_of=places)
        axes[1].set_xticks(list(places.values()), list(places))
        axes[1].set_xlim(-0.5, len(names) - 0.5)
        axes[1].set_ylabel(f"communication until {100 * TARGET:.0f} % (ms)")
        axes[1].set_ylim(bottom=0)
        explain_marks(axes[1], [point.verdict for points in reached.values() for point in points])
        axes[0].legend(loc="lower right")
        if axes[1].get_legend_handles_labels()[1]:
            axes[1].legend()
        return save(made, path, results.heading)
