"""Figure 1: hops of all schedulers against storage, with both bounds, on each network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from experiments.plotting.series import draw_companion, draw_series
from experiments.plotting.style import COLOURS, figure, save
from experiments.study.model import FigureSection
from experiments.study.results import StudyResults
from experiments.system import Metric, Row

BOUNDS = {"packet_bound_hops": ("--", "bound of packets"), "cut_bound_hops": (":", "bound of cuts")}


def networks(results: StudyResults) -> list[str]:
    """In the order of the study."""
    return list(dict.fromkeys(str(point.row["topology.kind"]) for point in results.points))


def _storage(row: Row) -> float:
    return float(row["samples.storage"])


def _on(network: str, column: str, row: Row) -> float | None:
    value = row[column] if row["topology.kind"] == network else None
    return None if value is None else float(value)


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.figures.KINDS."""
    found = networks(results)
    with figure(width_in=3.6, height_in=4.2, columns=len(found)) as (made, axes):
        for at, network in zip(axes, found, strict=True):
            series = results.derived_series(
                _storage, partial(_on, network, section.y), lambda row: row["shuffle.scheduler"]
            )
            for number, (scheduler, points) in enumerate(series.items()):
                draw_series(at, points, label=scheduler, number=number)
            for column, (dashes, word) in BOUNDS.items():
                for points in results.derived_series(
                    _storage, partial(_on, network, column), lambda row: None
                ).values():
                    draw_companion(at, points, label=word, number=None, dashes=dashes)
            at.set_title(network)
            at.set_xlabel("samples that a worker stores / all")
            at.set_xlim(0, 1)
            at.set_ylim(bottom=0)
        assert len(series) <= len(COLOURS), "each scheduler has a colour of its own"
        axes[0].set_ylabel("hops of all packets")
        handles, labels = axes[-1].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=2 * len(found))
        return save(made, path, results.heading)
