"""Figure 1: what all links together carry for a gradient of every peer, against the number of peers."""

from __future__ import annotations

from gradbed.experiments.plotting.series import draw_all, draw_companion, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind

EXACT = {
    "unicast": "unicast: sum of all distances",
    "push": "push: n E",
    "ring": "ring: 4 (n - 1) / n E",
}
"""What exchanges take without headers and Interests; E: edges of the tree that spans the peers."""
SUMMED = "sums in every switch: 2 E"


@figure_kind("ndn-byte-hops", width_in=5.6, height_in=4.2)
def draw(sheet: Sheet) -> None:
    [axes], results = sheet.axes, sheet.results
    measured = results.series("workload.peers", "gradient_hops", "workload.exchange")
    exact = results.series("workload.peers", "expected_hops", "workload.exchange")
    draw_all(axes, measured, names={exchange: f"{exchange}, measured" for exchange in measured})
    for number, exchange in enumerate(measured):
        if exchange in EXACT:
            draw_companion(axes, exact[exchange], label=EXACT[exchange], number=number, dashes=":")
    for points in results.series("workload.peers", "summed_hops").values():
        draw_companion(axes, points, label=SUMMED, number=None, dashes="--")
    axes.set(xlabel="peers (n)", yscale="log", ylabel="bytes x hops of a round / gradient bytes")
    axes.xaxis.get_major_locator().set_params(integer=True)
    explain_marks(axes, verdicts(measured))
    axes.legend(fontsize="small", ncols=2)
