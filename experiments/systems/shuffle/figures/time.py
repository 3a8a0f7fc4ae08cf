"""Figure 2: the time of a shuffle against storage, and as a part of what unicast takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric

BASELINES = {"unicast-random": "-", "unicast-nearest": ":"}
"""Which unicast is compared with decides the picture, so both are shown."""


def mean_times(results: StudyResults) -> dict[str, dict[Any, float]]:
    """In seconds, by scheduler and storage."""
    series = results.series("samples.storage", "shuffle_time_s", "shuffle.scheduler")
    return {
        name: {point.x: sum(point.values) / len(point.values) for point in points if point.values}
        for name, points in series.items()
    }


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    in_ms = results.derived_series(
        lambda row: row["samples.storage"],
        lambda row: 1e3 * row["shuffle_time_s"],
        lambda row: row["shuffle.scheduler"],
    )
    times = mean_times(results)
    with figure(width_in=4.4, height_in=3.6, columns=2) as (made, axes):
        for number, (name, points) in enumerate(in_ms.items()):
            draw_series(axes[0], points, label=name, number=number)
        for baseline, dashes in BASELINES.items():
            for number, (name, of_storage) in enumerate(times.items()):
                shared = sorted(of_storage.keys() & times.get(baseline, {}).keys())
                if name in BASELINES or not shared:
                    continue
                share = [100 * of_storage[x] / times[baseline][x] for x in shared]
                axes[1].plot(shared, share, dashes, color=COLOURS[number], linewidth=1.2)
            axes[1].plot([], [], dashes, color="black", linewidth=1.2, label=f"of {baseline}")
        for each in axes:
            each.set_xlabel("samples that a worker stores / all samples")
            each.set_xlim(left=0)
        axes[0].set_ylabel("time of a shuffle (ms)")
        for each in axes:
            each.set_yscale("log", subs=(2, 5))  # the master is far above all others
            each.yaxis.set_major_formatter("{x:g}")
            each.yaxis.set_minor_formatter("{x:g}")
        axes[1].set_ylabel("time of a shuffle (%)")
        axes[1].axhline(100, color="grey", linewidth=0.8)
        explain_marks(axes[0], [point.verdict for points in in_ms.values() for point in points])
        for each in axes:
            each.legend(fontsize="small")
        return save(made, path, results.heading)
