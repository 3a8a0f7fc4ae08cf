"""Figure 1: what all links together carry for a gradient of every peer, against the number of peers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.series import draw_companion, draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric

EXACT = {
    "unicast": "unicast: sum of all distances",
    "push": "push: n E",
    "ring": "ring: 4 (n - 1) / n E",
}
"""What exchanges take without headers and Interests; E: edges of the tree that spans the peers."""
SUMMED = "sums in every switch: 2 E"


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    measured = results.series("workload.peers", "gradient_hops", "workload.exchange")
    exact = results.series("workload.peers", "expected_hops", "workload.exchange")
    with figure(width_in=5.6, height_in=4.2) as (made, [axes]):
        for number, (exchange, points) in enumerate(measured.items()):
            draw_series(axes, points, label=f"{exchange}, measured", number=number)
        for number, exchange in enumerate(measured):
            if exchange in EXACT:
                draw_companion(axes, exact[exchange], label=EXACT[exchange], number=number, dashes=":")
        for points in results.series("workload.peers", "summed_hops").values():
            draw_companion(axes, points, label=SUMMED, number=None, dashes="--")
        axes.set_xlabel("peers (n)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_yscale("log")
        axes.set_ylabel("bytes x hops of a round / gradient bytes")
        explain_marks(axes, [point.verdict for points in measured.values() for point in points])
        axes.legend(fontsize="small", ncols=2)
        return save(made, path, results.heading)
