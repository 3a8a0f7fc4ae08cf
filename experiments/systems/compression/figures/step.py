"""Figure 2: rate, ratio and queue over time, of the first repetition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.style import figure, save
from experiments.study.model import FigureSection
from experiments.study.results import StudyResults
from experiments.system import Metric
from experiments.systems.compression.figures.variants import Row, colour

WORKER = "worker 0"
NAMES = {"none": "no rule", "iteration": "repaired, R0 of the iteration", "run": "repaired, R0 of the run"}


def name_of(row: Row) -> str:
    return NAMES["none" if row["ratio.rule"] == "none" else row["ratio.initial_rate"]]


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.figures.KINDS."""
    with figure(columns=3, width_in=4.0) as (made, axes):
        first = [point for point in results.points if point.repetition == 0]
        for number, point in enumerate(first):
            name, style = name_of(point.row), {"color": colour(number), "linewidth": 1.1}
            rates = [row for row in point.table("rates") if row["worker"] == WORKER]
            axes[0].plot([r["time_s"] for r in rates], [r["rate_bps"] / 1e6 for r in rates], **style, label=name)
            rounds = point.table("rounds")
            axes[1].plot([r["round"] + 1 for r in rounds], [r["ratio"] for r in rounds], **style, marker=".")
            queues = point.table("link_samples")
            axes[2].plot([r["time_us"] / 1e6 for r in queues], [r["queue_packets"] for r in queues], **style)
        for panel, x, y in zip(
            axes,
            ("time (s)", "iteration", "time (s)"),
            (f"rate of {WORKER} (Mbit/s)", "ratio, mean of workers", "packets that wait for the server's link"),
            strict=True,
        ):
            panel.set_xlabel(x)
            panel.set_ylabel(y)
            panel.set_ylim(bottom=0)
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=3)
        return save(made, path, results.heading)
