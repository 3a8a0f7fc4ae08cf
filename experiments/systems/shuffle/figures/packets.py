"""Figure 1, too: packets of all schedulers against storage, beside published curves, on the study's first network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.plotting.series import draw_series
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.shuffle.figures.hops import networks
from experiments.systems.shuffle.theory import CURVES
from experiments.tables.metric import Metric

DASHES = (":", "-.", "--", (0, (5, 1, 1, 1, 1, 1)))


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    network = networks(results)[0]
    workers = next(p.row["shuffle.workers"] for p in results.points if p.row["topology.kind"] == network)
    with figure(width_in=6.4, height_in=4.4) as (made, [axes]):
        series = results.derived_series(
            lambda row: float(row[section.x]),
            lambda row: row[section.y] if row["topology.kind"] == network else None,
            lambda row: row["shuffle.scheduler"],
        )
        for number, (scheduler, points) in enumerate(series.items()):
            draw_series(axes, points, label=scheduler, number=number)
        shares = np.linspace(1 / workers, 1, 200).tolist()
        for dashes, (name, curve) in zip(DASHES, CURVES.items(), strict=True):
            heights = [curve(workers, share) for share in shares]
            axes.plot(shares, heights, linestyle=dashes, color="black", linewidth=1, label=name)
        axes.set_xlabel("samples that a worker stores / all")
        axes.set_ylabel("packets / samples of the data set")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.05)
        axes.legend(fontsize="small")
        return save(made, path, f"{workers} workers\n{results.heading}")
