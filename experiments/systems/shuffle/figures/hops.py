"""Figure 1: hops of all schedulers against storage, with what none can go below, on each network."""

from __future__ import annotations

from functools import partial

from gradbed.experiments.plotting.series import draw_all, draw_companion
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.shuffle.drawn import MASTER_SCHEDULERS
from gradbed.experiments.tables.tables import Row

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


@figure_kind("shuffle-hops", columns=lambda results, _: len(networks(results)), width_in=3.6, height_in=4.2)
def draw(sheet: Sheet) -> None:
    axes, results, found = sheet.axes, sheet.results, networks(sheet.results)
    for at, network in zip(axes, found, strict=True):
        series = results.derived_series(
            _storage, partial(_on, network, sheet.section.y, None), lambda row: row["shuffle.scheduler"]
        )
        draw_all(at, series)
        for (column, master), (dashes, word) in BOUNDS.items():
            for points in results.derived_series(
                _storage, partial(_on, network, column, master), lambda row: None
            ).values():
                masters = [n for n, name in enumerate(series) if name in MASTER_SCHEDULERS]
                own = masters[0] if master and masters else None
                draw_companion(at, points, label=word, number=own, dashes=dashes)
        at.set(title=network, xlabel="samples that a worker stores / all", xlim=(0, 1), ylim=(0, None))
    assert len(series) <= len(COLOURS), "each scheduler has a colour of its own"
    axes[0].set_ylabel("hops of all packets")
    legend_below(axes[-1], 2 * len(found))
