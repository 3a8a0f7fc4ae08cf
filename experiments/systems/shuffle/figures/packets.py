"""Figure 1, too: packets of all schedulers against storage, beside published curves, on the study's first network."""

from __future__ import annotations

import numpy as np

from gradbed.experiments.plotting.series import draw_all
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.systems.shuffle.figures.hops import networks
from gradbed.experiments.systems.shuffle.theory import CURVES

DASHES = (":", "-.", "--", (0, (5, 1, 1, 1, 1, 1)))


@figure_kind("shuffle-packets", width_in=6.4, height_in=4.4)
def draw(sheet: Sheet) -> str:
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    network = networks(results)[0]
    workers = next(p.row["shuffle.workers"] for p in results.points if p.row["topology.kind"] == network)
    series = results.derived_series(
        lambda row: float(row[section.x]),
        lambda row: row[section.y] if row["topology.kind"] == network else None,
        lambda row: row["shuffle.scheduler"],
    )
    draw_all(axes, series)
    shares = np.linspace(1 / workers, 1, 200).tolist()
    for dashes, (name, curve) in zip(DASHES, CURVES.items(), strict=True):
        heights = [curve(workers, share) for share in shares]
        axes.plot(shares, heights, linestyle=dashes, color="black", linewidth=1, label=name)
    axes.set(
        xlabel="samples that a worker stores / all",
        ylabel="packets / samples of the data set",
        xlim=(0, 1),
        ylim=(0, 1.05),
    )
    axes.legend(fontsize="small")
    return f"{workers} workers\n{results.heading}"
