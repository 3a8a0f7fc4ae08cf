"""Figure 6: what ranks do when, a bar for each node of their graphs, as a Gantt chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.tables.words import path_words

RANKS = 8
"""Shown of a point, at most."""
_COLOURS: Mapping[str, str] = {
    "compute": COLOURS[0],
    "memory": COLOURS[6],
    "all-reduce": COLOURS[1],
    "reduce-scatter": COLOURS[3],
    "all-gather": COLOURS[5],
    "all-to-all": COLOURS[2],
    "send": COLOURS[4],
}
_OTHER = "#555555"


PANELS = 3


def _shown(results: StudyResults) -> list[DonePoint]:
    """First repetitions that told of nodes, some of them."""
    return [point for point in results.points if point.repetition == 0 and point.table("nodes")][:PANELS]


@figure_kind("training-timeline", rows=lambda results, _: len(_shown(results)), width_in=7.2, height_in=2.8)
def draw(sheet: Sheet) -> str:
    """A panel for each point: of each rank two lines, what it computes, and its communication below."""
    points = _shown(sheet.results)
    for axes, point in zip(sheet.axes, points, strict=True):
        _draw_point(axes, point)
        if len(points) > 1:
            axes.set_title(f"{path_words(sheet.section.x)}: {point.row[sheet.section.x]}")
    sheet.axes[-1].set_xlabel("time (ms)")
    legend_below(sheet.axes[-1], 5)
    return sheet.results.heading_of_first


def _draw_point(axes: Any, point: DonePoint) -> None:
    # A receive is a wait: what comes is the peer's send.
    rows = [
        row
        for row in point.table("nodes")
        if row["iteration"] == 0 and row["job"] == 1 and row["rank"] < RANKS and row["kind"] != "receive"
    ]
    first_s = min(row["begin_s"] for row in rows)
    bars: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        begin_ms = 1e3 * (row["begin_s"] - first_s)
        bars[row["rank"], row["kind"]].append((begin_ms, 1e3 * (row["end_s"] - row["begin_s"])))
    named = set()
    for (rank, kind), spans in sorted(bars.items()):
        computes = kind in ("compute", "memory")
        axes.broken_barh(
            spans,
            (-rank + (0.02 if computes else -0.38), 0.36),
            color=_COLOURS.get(kind, _OTHER),
            linewidth=0,
            label=None if kind in named else kind,
        )
        named.add(kind)
    ranks = sorted({row["rank"] for row in rows})
    axes.set_yticks([-rank for rank in ranks], [f"rank {rank}" for rank in ranks])
    axes.set_xlim(0, None)
    axes.grid(axis="y", visible=False)
