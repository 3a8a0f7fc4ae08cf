"""Figure 7: iterations with sums by hosts and by switches, by model and parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradbed.experiments.plotting.series import beside
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below

SWITCHES = "collectives.in_network"


def _model(row: Mapping[str, Any]) -> str:
    return f"width {row['workload.width']}\ndp {row['workload.dp']}, tp {row['workload.tp']}, pp {row['workload.pp']}"


@figure_kind("training-models", width_in=7.2, height_in=3.8)
def draw(sheet: Sheet) -> None:
    """Bars: computing below, exposed communication above, by who sums."""
    [axes], results = sheet.axes, sheet.results
    rows = [point.row for point in results.points if point.stored.is_good]
    places = {model: float(place) for place, model in enumerate(dict.fromkeys(map(_model, rows)))}
    for number, (who, label) in enumerate((("none", "sums by hosts"), ("aggregation", "sums by switches"))):
        at, width = beside(places, number, 2)
        own = [row for row in rows if row[SWITCHES] == who]
        xs = [at[_model(row)] for row in own]
        compute = [1e3 * row["compute_time_s"] for row in own]
        axes.bar(xs, compute, width, color=COLOURS[number], label=label)
        exposed = [1e3 * row["exposed_s"] for row in own]
        axes.bar(xs, exposed, width, bottom=compute, color=COLOURS[number], alpha=0.4)
    axes.bar(0, 0, color="grey", alpha=0.4, label="exposed communication")
    axes.set_xticks(list(places.values()), list(places), fontsize=7)
    axes.set(ylabel="iteration (ms)")
    legend_below(axes, 3)
