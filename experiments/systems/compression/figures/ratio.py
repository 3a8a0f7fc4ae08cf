"""Figure 5: the ratio that each rule chooses against the rate that is left, beside its formula."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.compression.figures.variants import Row, colour
from experiments.tables.metric import Metric
from hosts.systems.compression.ratio import repaired_ratio, source_ratio

NAMES = {"none": "no rule", "source": "the source, to the letter", "repaired": "repaired"}
SENT, SUM_SHARE = 0.15, 1 / 8
"""Parts of the gradient: what is sent when the rule decides, and the sum's share of it with eight workers; for the
formulas' curves."""


RULES: dict[str, Callable[..., float]] = {
    "source": source_ratio,
    "repaired": functools.partial(repaired_ratio, sum_share=SUM_SHARE),
}


def rate_left(row: Row) -> float:
    """Of the server's link, the part that the first fault leaves. Both rates are nominal."""
    rate_bps: float = 1e6 * row["faults"][0]["change"]["rate_mbps"]
    return rate_bps / float(row["link_rate_bps"])


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    series = results.derived_series(rate_left, itemgetter("ratio"), itemgetter("ratio.rule"))
    with figure() as (made, (axes,)):
        for number, (name, points) in enumerate(series.items()):
            draw_series(axes, points, label=NAMES[name], number=number)
            if name in RULES:
                rates = [n / 50 for n in range(1, 51)]
                ratios = [RULES[name](SENT, 1.0, 1.0, rate) for rate in rates]
                axes.plot(rates, ratios, ":", color=colour(number), linewidth=1)
        axes.plot([], [], ":", color="grey", label=f"formula, {SENT:.0%} sent before")
        axes.set_xlabel("rate that is left / initial rate")
        axes.set_ylabel("ratio: bytes sent / bytes of the gradient")
        axes.set_ylim(bottom=0)
        explain_marks(axes, [point.verdict for points in series.values() for point in points])
        axes.legend()
        return save(made, path, results.heading)
