"""Figure 5: how long packets of class A wait for a neighbour's sample, against the threshold."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from gradbed.experiments.plotting.series import draw_series, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.tables.tables import Row

X = "shuffle.threshold_us"
WAITS = {
    "longest, on the network": "max_wait_s",
    "longest, in the schedule": "planned_wait_s",
    "mean, on the network": "mean_wait_s",
}


@figure_kind("shuffle-waits", columns=2, width_in=4.4, height_in=3.6)
def draw(sheet: Sheet) -> None:
    [left, right], results = sheet.axes, sheet.results
    found = []
    for number, (name, column) in enumerate(WAITS.items()):
        waits = results.derived_series(itemgetter(X), partial(_in_us, column), lambda row: None)
        for points in waits.values():
            draw_series(left, points, label=name, number=number)
        found += verdicts(waits)
    thresholds = sorted({point.row[X] for point in results.points})
    left.plot(thresholds, thresholds, "--", color="black", linewidth=0.8, label="the threshold")
    for number, column in enumerate(("hops", "loans")):
        for points in results.series(X, column).values():
            draw_series(right, points, label=column, number=number)
    left.set(xlabel="threshold (us)", ylim=(0, None), ylabel="wait of a packet (us)")
    right.set(xlabel="threshold (us)", ylim=(0, None), ylabel="of the schedule")
    explain_marks(left, found)
    for each in (left, right):
        each.legend(fontsize="small")


def _in_us(column: str, row: Row) -> float:
    return 1e6 * float(row[column])
