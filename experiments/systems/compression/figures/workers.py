"""Figure 1: iteration time, and what a worker sent for it, against the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.compression.figures.variants import variant
from experiments.tables.metric import Metric


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    workers = itemgetter("workload.workers")
    times = results.derived_series(workers, lambda row: 1e3 * row["iteration_time_s"], variant)
    sent = results.derived_series(workers, lambda row: 1e-3 * row["wire_bytes"], variant)
    with figure(columns=2, height_in=4.2) as (made, axes):
        for panel, series in zip(axes, (times, sent), strict=True):
            for number, (name, points) in enumerate(series.items()):
                draw_series(panel, points, label=name, number=number)
            panel.set_xlabel("workers")
        axes[0].set_ylim(bottom=0)
        axes[1].set_yscale("log")
        axes[0].set_ylabel("median iteration time (ms)")
        axes[1].set_ylabel("kB that a worker sends in an iteration")
        explain_marks(axes[0], [point.verdict for points in times.values() for point in points])
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=3)
        return save(made, path, results.heading)
