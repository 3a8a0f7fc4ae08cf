"""Figure 5: the ratio that each rule chooses against the rate that is left, beside its formula."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import itemgetter

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.systems.compression.figures.variants import Row, colour
from gradbed.hosts.systems.compression.ratio import repaired_ratio, source_ratio

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


@figure_kind("compression-ratio")
def draw(sheet: Sheet) -> None:
    [axes] = sheet.axes
    series = sheet.results.derived_series(rate_left, itemgetter("ratio"), itemgetter("ratio.rule"))
    draw_all(axes, series, names=NAMES)
    rates = [n / 50 for n in range(1, 51)]
    for number, name in enumerate(series):
        if name in RULES:
            ratios = [RULES[name](SENT, 1.0, 1.0, rate) for rate in rates]
            axes.plot(rates, ratios, ":", color=colour(number), linewidth=1)
    axes.plot([], [], ":", color="grey", label=f"formula, {SENT:.0%} sent before")
    axes.set(
        xlabel="rate that is left / initial rate",
        ylabel="ratio: bytes sent / bytes of the gradient",
        ylim=(0, None),
    )
    explain_marks(axes, verdicts(series))
    axes.legend()
