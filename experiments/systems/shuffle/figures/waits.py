"""Figure 5: how long packets of class A wait for a neighbour's sample, against the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    shown = {
        "longest, on the network": lambda row: 1e6 * row["max_wait_s"],
        "longest, in the schedule": lambda row: 1e6 * row["planned_wait_s"],
        "mean, on the network": lambda row: 1e6 * row["mean_wait_s"],
    }
    verdicts = []
    with figure(width_in=4.4, height_in=3.6, columns=2) as (made, axes):
        for number, (name, value) in enumerate(shown.items()):
            for points in results.derived_series(
                lambda row: row["shuffle.threshold_us"], value, lambda row: None
            ).values():
                draw_series(axes[0], points, label=name, number=number)
                verdicts += [point.verdict for point in points]
        thresholds = sorted({point.row["shuffle.threshold_us"] for point in results.points})
        axes[0].plot(thresholds, thresholds, "--", color="black", linewidth=0.8, label="the threshold")
        for number, (name, column) in enumerate((("hops", "hops"), ("loans", "loans"))):
            for points in results.series("shuffle.threshold_us", column).values():
                draw_series(axes[1], points, label=name, number=number)
        for each in axes:
            each.set_xlabel("threshold (us)")
            each.set_ylim(bottom=0)
        axes[0].set_ylabel("wait of a packet (us)")
        axes[1].set_ylabel("of the schedule")
        explain_marks(axes[0], verdicts)
        for each in axes:
            each.legend(fontsize="small")
        return save(made, path, results.heading)
