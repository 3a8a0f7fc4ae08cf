"""Figure 4: how long schedulers take, against the size of the shuffle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.series import draw_series
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.shuffle.bench.growth import GOALS_S
from experiments.tables.metric import Metric
from experiments.tables.tables import Row


def label(row: Row) -> str:
    return f"{row['shuffle.scheduler']}, {row['topology.kind']}"


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS. Goals are short bars."""
    with figure(width_in=5.2, height_in=3.8) as (made, [axes]):
        series = results.derived_series(lambda row: row["samples.samples"], lambda row: row["schedule_s"], label)
        for number, (name, points) in enumerate(series.items()):
            draw_series(axes, points, label=name, number=number)
        drawn = {str(point.row["topology.kind"]) for point in results.points}
        goals = [(samples, goal_s) for (k, samples), goal_s in GOALS_S.items() if f"fat-tree:{k}" in drawn]
        if goals:
            axes.plot(*zip(*goals, strict=True), "_", color="black", markersize=16, label="goal")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("samples")
        axes.set_ylabel("processor time for a schedule (s)")
        axes.legend(fontsize="small")
        return save(made, path, results.heading)
