"""Figure 6: what ranks do when, a bar for each node of their graphs, as a Gantt chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from experiments.plotting.style import COLOURS, NothingToDraw
from experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below

RANKS = 8
"""Shown at most, of the first point and repetition that told of nodes."""
_COLOURS: Mapping[str, str] = {
    "compute": COLOURS[0],
    "memory": COLOURS[6],
    "all-reduce": COLOURS[1],
    "reduce-scatter": COLOURS[3],
    "all-gather": COLOURS[5],
    "all-to-all": COLOURS[2],
    "send": COLOURS[4],
    "receive": COLOURS[4],
}
_OTHER = "#555555"


@figure_kind("training-timeline", width_in=7.2, height_in=3.6)
def draw(sheet: Sheet) -> str:
    """Of each rank two lines: what it computes, and its communication below."""
    [axes], results = sheet.axes, sheet.results
    shown = next((point for point in results.points if point.table("nodes")), None)
    if shown is None:
        raise NothingToDraw("no rank told of its nodes (--timeline)")
    rows = [row for row in shown.table("nodes") if row["iteration"] == 0 and row["job"] == 1 and row["rank"] < RANKS]
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
    axes.set(xlabel="time (ms)", xlim=(0, None))
    axes.grid(axis="y", visible=False)
    legend_below(axes, 5)
    return _heading(results.heading_of_first)


def _heading(text: Any) -> str:
    return str(text)
