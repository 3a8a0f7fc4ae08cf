"""Figure 2: throughput and round time against the number of workers."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from gradbed.experiments.plotting.series import draw_all, draw_companion, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.aggregation.figures.modes import NUMBERS, in_link_rates, mode
from gradbed.experiments.systems.aggregation.metrics import SHARE


def ring_bound(workers: int) -> float:
    """What ring all-reduce of two or more workers can reach, in units of the link rate: each sends 2(n-1)/n gradients
    over its own link (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69, 2009)."""
    return workers / (2 * (workers - 1))


@figure_kind("aggregation-workers", columns=2)
def draw(sheet: Sheet) -> None:
    [left, right], results = sheet.axes, sheet.results
    workers = itemgetter("workload.workers")
    throughput, bounds, packets = (
        results.derived_series(workers, partial(in_link_rates, name=name), mode)
        for name in ("throughput_bps", "bound_bps", "packet_bound_bps")
    )
    times = results.derived_series(workers, lambda row: 1e3 * row["round_time_s"], mode)
    draw_all(left, throughput, numbers=NUMBERS, possible=SHARE)
    draw_all(right, times, numbers=NUMBERS)
    for companions, dashes in ((bounds, "--"), (packets, "-.")):
        for name, points in companions.items():
            draw_companion(left, points, label=None, number=NUMBERS[name], dashes=dashes)
    counts = sorted({point.x for point in throughput.get("ring", []) if point.x > 1})
    if counts:
        left.plot(counts, [ring_bound(n) for n in counts], ":", color=COLOURS[NUMBERS["ring"]], linewidth=1.0)
    for dashes, label in (
        ("--", "bound of the linear program"),
        ("-.", "bound for packets with their labels"),
        (":", "n / 2(n - 1): ring"),
    ):
        left.plot([], [], dashes, color="black", linewidth=1.0, label=label)
    for panel in (left, right):
        panel.set_xlabel("workers")
        panel.xaxis.get_major_locator().set_params(integer=True)
    left.set(ylim=(0, 1.08), ylabel="throughput / link rate")
    right.set(ylim=(0, None), ylabel="median round time (ms)")
    explain_marks(left, verdicts(throughput))
    legend_below(left, 3)
