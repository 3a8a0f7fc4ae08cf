"""Figure 3: test accuracy against time and against bytes on the wire, of the first repetition; full lines with error
feedback, dashed ones without."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.compression.figures.variants import colour
from experiments.tables.metric import Metric


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    names = list(dict.fromkeys(point.row["compression.compress"] for point in results.points))
    with figure(columns=2, height_in=4.2) as (made, axes):
        for point in results.points:
            if point.repetition:
                continue
            rounds = sorted(point.table("rounds"), key=lambda row: row["round"])
            kept = point.row["compression.error_feedback"]
            name = point.row["compression.compress"]
            for panel, column, unit in ((axes[0], "iteration_time_s", 1e3), (axes[1], "wire_bytes", 1e-3)):
                panel.plot(
                    [unit * value for value in accumulate(row[column] for row in rounds)],
                    [100 * row["accuracy"] for row in rounds],
                    "-" if kept else "--",
                    color=colour(names.index(name)),
                    marker="" if names.index(name) < 7 else ".",
                    linewidth=1.1,
                    label=name if kept else None,
                )
        axes[0].set_xlabel("time (ms)")
        axes[1].set_xlabel("kB that a worker has sent")
        for panel in axes:
            panel.set_xscale("log")
            panel.set_ylabel("test accuracy (%)")
        axes[0].plot([], [], "--", color="grey", label="without error feedback")
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=3)
        return save(made, path, results.heading_of_first)
