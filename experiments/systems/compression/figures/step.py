"""Figure 2: rate, ratio and queue over time, of the first repetition; a row for each thing that happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.compression.figures.variants import Row, colour

WORKER = "worker 0"
NAMES = {
    "none": "no rule",
    "source": "the source, to the letter",
    "iteration": "repaired, R0 of the iteration",
    "run": "repaired, R0 of the run",
}


def name_of(row: Row) -> str:
    rule = row["ratio.rule"]
    return NAMES[row["ratio.initial_rate"] if rule == "repaired" else rule]


def what_happens(row: Row) -> str:
    return "competing traffic" if row["background.load"] else "less of the link"


def scenes(results: StudyResults) -> dict[str, list[DonePoint]]:
    """The points of the first repetition by what happens."""
    found: dict[str, list[DonePoint]] = {}
    for point in results.points:
        if point.repetition == 0:
            found.setdefault(what_happens(point.row), []).append(point)
    return found


@figure_kind("compression-step", columns=3, rows=lambda results, _: len(scenes(results)), width_in=4.0, height_in=3.0)
def draw(sheet: Sheet) -> str:
    axes, found = sheet.axes, scenes(sheet.results)
    names = list(dict.fromkeys(name_of(point.row) for points in found.values() for point in points))
    for row, (scene, points) in enumerate(found.items()):
        of_scene = axes[3 * row : 3 * row + 3]
        for point in points:
            name = name_of(point.row)
            _draw_point(of_scene, point, name, colour(names.index(name)))
        for panel, x, y in zip(
            of_scene,
            ("time (s)", "iteration", "time (s)"),
            (f"rate of {WORKER} (Mbit/s)", "ratio, mean of workers", "queue of the server's link (packets)"),
            strict=True,
        ):
            panel.set_title(scene, fontsize=9)
            panel.set(xlabel=x, ylabel=y, ylim=(0, None))
    legend_below(axes[0], 4)
    return sheet.results.heading_of_first


def _draw_point(axes: Sequence[Any], point: DonePoint, name: str, of_it: str) -> None:
    rates = [row for row in point.table("rates") if row["worker"] == WORKER]
    rounds, queues = point.table("rounds"), point.table("link_samples")
    style = {"color": of_it, "linewidth": 1.1}
    axes[0].plot([r["time_s"] for r in rates], [r["rate_bps"] / 1e6 for r in rates], **style, label=name)
    axes[1].plot([r["round"] + 1 for r in rounds], [r["ratio"] for r in rounds], **style, marker=".")
    axes[2].plot([r["time_us"] / 1e6 for r in queues], [r["queue_packets"] for r in queues], **style)
