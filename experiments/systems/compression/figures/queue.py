"""Figure 4: the longest queue of the server's link, and its losses, against the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.compression.figures.variants import PACING
from experiments.tables.metric import Metric


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    workers = itemgetter("workload.workers")
    with figure(columns=2) as (made, axes):
        for panel, column, words in (
            (axes[0], "longest_queue", "longest queue (packets)"),
            (axes[1], "queue_drops", "packets dropped"),
        ):
            series = results.derived_series(workers, itemgetter(column), itemgetter("transport.pacing"))
            for number, (name, points) in enumerate(series.items()):
                draw_series(panel, points, label=PACING[name], number=number)
            panel.set_xlabel("workers")
            panel.set_ylabel(words)
            panel.set_ylim(bottom=0)
            explain_marks(panel, [point.verdict for points in series.values() for point in points])
        axes[0].legend()
        return save(made, path, results.heading)
