"""Figure 5: what each of several jobs gets, and how fair that is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gradbed.experiments.plotting.series import draw_series, explain_marks
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.aggregation.metrics import SHARE

GROUP_WIDTH = 0.75
"""Of the jobs of all series at one place."""


@figure_kind("aggregation-jobs", columns=2, width_in=5.0, height_in=3.6)
def draw(sheet: Sheet) -> None:
    """Left: every job beside the others, with the bound that it would have alone."""
    [left, right], results = sheet.axes, sheet.results
    jobs = {(row["digest"], row["job"]): row for row in results.table("jobs")}
    counts = sorted({point.row["workload.jobs"] for point in results.points})
    names = list(dict.fromkeys(point.row["switches.placement"] for point in results.points))
    verdicts = []
    for number, name in enumerate(names):
        for job in range(1, max(counts) + 1):
            measured, bounds = (
                results.derived_series(
                    lambda row: row["workload.jobs"],
                    partial(_of_job, jobs, name, job, column),
                    lambda row: row["switches.placement"],
                ).get(name, [])
                for column in ("throughput_bps", "bound_bps")
            )
            for point, bound in zip(measured, bounds, strict=True):
                place = counts.index(point.x) + _offset(number, len(names), job, point.x)
                draw_series(left, [point], label=None, number=number, x_of={point.x: place}, possible=SHARE)
                alone = (*bound.values, *bound.invalid)
                left.plot([place], [sum(alone) / len(alone)], "_", color=COLOURS[number], markersize=8)
                verdicts.append(point.verdict)
    fairness = results.series("workload.jobs", "fairness", "switches.placement")
    for number, name in enumerate(names):
        places = {count: index + 0.12 * (number - 1) for index, count in enumerate(counts)}
        draw_series(right, fairness[name], label=name, number=number, x_of=places, possible=SHARE)
    right.plot([], [], "_", color="black", markersize=8, label="bound of a job alone")
    for panel, label in ((left, "throughput of each job / link rate"), (right, "Jain's fairness index")):
        panel.set_xticks(range(len(counts)), [str(count) for count in counts])
        panel.set(xlim=(-0.6, len(counts) - 0.4), ylim=(0, 1.08), xlabel="jobs at the same time", ylabel=label)
    explain_marks(right, verdicts)
    legend_below(right, 3)


def _of_job(
    jobs: Mapping[tuple[str, int], Mapping[str, Any]], name: str, job: int, column: str, row: Mapping[str, Any]
) -> float | None:
    found = jobs.get((row["digest"], job))
    if found is None or row["switches.placement"] != name:
        return None
    return float(found[column]) / float(row["link_rate_bps"])


def _offset(number: int, series: int, job: int, jobs: int) -> float:
    """From the middle of a group: series beside each other, and in each its jobs."""
    width = GROUP_WIDTH / series
    inside = 0.0 if jobs == 1 else (job - 1) / (jobs - 1) - 0.5
    return width * (number - (series - 1) / 2 + 0.7 * inside)
