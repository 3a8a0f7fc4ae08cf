"""Figure 1: iteration time, and what a worker sent for it, against the number of workers."""

from __future__ import annotations

from operator import itemgetter

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.compression.figures.variants import variant


@figure_kind("compression-workers", columns=2, height_in=4.2)
def draw(sheet: Sheet) -> None:
    [left, right], results = sheet.axes, sheet.results
    workers = itemgetter("workload.workers")
    times = results.derived_series(workers, lambda row: 1e3 * row["iteration_time_s"], variant)
    sent = results.derived_series(workers, lambda row: 1e-3 * row["wire_bytes"], variant)
    draw_all(left, times)
    draw_all(right, sent)
    left.set(xlabel="workers", ylim=(0, None), ylabel="median iteration time (ms)")
    right.set(xlabel="workers", yscale="log", ylabel="kB that a worker sends in an iteration")
    explain_marks(left, verdicts(times))
    legend_below(left, 3)
