"""Figure 4: how long schedulers take, against the size of the shuffle."""

from __future__ import annotations

from operator import itemgetter

from gradbed.experiments.plotting.series import draw_all
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.systems.shuffle.bench.growth import GOALS_S
from gradbed.experiments.tables.tables import Row


def label(row: Row) -> str:
    return f"{row['shuffle.scheduler']}, {row['topology.kind']}"


@figure_kind("shuffle-growth", width_in=5.2, height_in=3.8)
def draw(sheet: Sheet) -> None:
    """Goals are short bars."""
    [axes], results = sheet.axes, sheet.results
    draw_all(axes, results.derived_series(itemgetter("samples.samples"), itemgetter("schedule_s"), label))
    drawn = {str(point.row["topology.kind"]) for point in results.points}
    goals = [(samples, goal_s) for (k, samples), goal_s in GOALS_S.items() if f"fat-tree:{k}" in drawn]
    if goals:
        axes.plot(*zip(*goals, strict=True), "_", color="black", markersize=16, label="goal")
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="processor time for a schedule (s)")
    axes.legend(fontsize="small")
