"""Figure 1: hops of all schedulers against storage, with what none can go below, on each network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from experiments.plotting.series import draw_companion, draw_series
from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.shuffle.drawn import MASTER_SCHEDULERS
from experiments.tables.metric import Metric
from experiments.tables.tables import Row

BOUNDS = {
    ("packet_bound_hops", False): ("--", "bound of packets"),
    ("cut_bound_hops", False): (":", "bound of cuts"),
    ("bound_hops", True): ("-.", "bound with a master"),
}
"""By column, and whether a master, which stores everything, is there."""


def networks(results: StudyResults) -> list[str]:
    """In the order of the study."""
    return list(dict.fromkeys(str(point.row["topology.kind"]) for point in results.points))


def _storage(row: Row) -> float:
    return float(row["samples.storage"])


def _on(network: str, column: str, master: bool | None, row: Row) -> float | None:
    is_asked = master in (None, row["shuffle.scheduler"] in MASTER_SCHEDULERS)
    return float(row[column]) if is_asked and row["topology.kind"] == network else None


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    found = networks(results)
    with figure(width_in=3.6, height_in=4.2, columns=len(found)) as (made, axes):
        for at, network in zip(axes, found, strict=True):
            series = results.derived_series(
                _storage, partial(_on, network, section.y, None), lambda row: row["shuffle.scheduler"]
            )
            for number, (scheduler, points) in enumerate(series.items()):
                draw_series(at, points, label=scheduler, number=number)
            for (column, master), (dashes, word) in BOUNDS.items():
                for points in results.derived_series(
                    _storage, partial(_on, network, column, master), lambda row: None
                ).values():
                    own = next(n for n, name in enumerate(series) if name in MASTER_SCHEDULERS) if master else None
                    draw_companion(at, points, label=word, number=own, dashes=dashes)
            at.set_title(network)
            at.set_xlabel("samples that a worker stores / all")
            at.set_xlim(0, 1)
            at.set_ylim(bottom=0)
        assert len(series) <= len(COLOURS), "each scheduler has a colour of its own"
        axes[0].set_ylabel("hops of all packets")
        handles, labels = axes[-1].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=2 * len(found))
        return save(made, path, results.heading)
