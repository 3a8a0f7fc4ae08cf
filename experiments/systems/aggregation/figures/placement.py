"""Figure 1: throughput against the number of programmable switches, a panel for each topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradbed.experiments.plotting.series import draw_series, explain_marks
from gradbed.experiments.plotting.series_point import SeriesPoint
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.aggregation.figures.modes import in_link_rates
from gradbed.experiments.systems.aggregation.metrics import SHARE

LIMITED = ("greedy", "greedy-gradients", "exhaustive", "milp", "highest-degree", "random")
"""Methods that choose at most M switches: lines. The others take what they take: places beside the M axis."""
UNLIMITED = ("none", "server-tor", "every-tor", "grid")
GAP = 1.6
"""Between the largest M and the first of the other methods."""
DODGE = 0.14


def kinds(results: StudyResults) -> list[str]:
    """Of topologies, in the order of the study."""
    return list(dict.fromkeys(point.row["topology.kind"] for point in results.points))


@figure_kind("aggregation-placement", columns=lambda results, _: len(kinds(results)), width_in=5.4, height_in=3.9)
def draw(sheet: Sheet) -> None:
    """The section's y is the throughput that is drawn."""
    axes, results = sheet.axes, sheet.results
    for panel, kind in zip(axes, kinds(results), strict=True):
        _draw_panel(panel, results, sheet.section, kind)
    axes[0].set_ylabel("throughput / link rate")
    explain_marks(axes[0], [point.row["verdict"] for point in results.points])
    legend_below(axes[0], 4)


def _draw_panel(axes: Any, results: StudyResults, section: FigureSection, kind: str) -> None:
    measured = _series(results, section.y, kind)
    bounds = {name: _series(results, name, kind) for name in ("bound_bps", "packet_bound_bps")}
    most = max((point.x for name in LIMITED for point in measured.get(name, [])), default=0)
    lines = [name for name in LIMITED if name in measured]
    others = [name for name in UNLIMITED if name in measured]
    for number, name in enumerate(lines):
        offset = DODGE * (number - (len(lines) - 1) / 2)
        places = {point.x: point.x + offset for point in measured[name]}
        shifted = [replace(point, x=places[point.x]) for point in measured[name]]
        draw_series(axes, shifted, label=name, number=number, possible=SHARE)
        _draw_bounds(axes, bounds, name, places, COLOURS[number])
    for place, name in enumerate(others):
        # The same run stands for every M.
        alone = {point.x: most + GAP + place for point in measured[name][:1]}
        draw_series(axes, measured[name][:1], label=None, number=len(lines), x_of=alone, possible=SHARE)
        _draw_bounds(axes, bounds, name, alone, COLOURS[len(lines)])
    axes.axvline(most + GAP / 2, color="grey", linewidth=0.6)
    ticks = {float(m): str(m) for m in range(most + 1)}
    ticks |= {most + GAP + place: name for place, name in enumerate(others)}
    axes.set_xticks(list(ticks), list(ticks.values()))
    for label in axes.get_xticklabels()[most + 1 :]:
        label.set(rotation=35, ha="right", rotation_mode="anchor")
    axes.set(
        title=kind,
        xlabel="programmable switches besides the server's ToR (M), or a rule without limit",
        xlim=(-0.5, most + GAP + len(others) - 0.5),
        ylim=(0, 1.08),
    )
    axes.plot([], [], "_", color="black", markersize=11, label="bound of the linear program")
    axes.plot([], [], ".", color="black", markersize=3, label="bound for packets with these labels")


def _series(results: StudyResults, name: str, kind: str) -> dict[str, list[SeriesPoint]]:
    return results.derived_series(
        lambda row: row["switches.programmable"],
        lambda row: in_link_rates(row, name) if row["topology.kind"] == kind else None,
        lambda row: row["switches.placement"],
    )


def _draw_bounds(
    axes: Any,
    bounds: Mapping[str, Mapping[str, Sequence[SeriesPoint]]],
    method: str,
    places: Mapping[int, float],
    colour: str,
) -> None:
    """A dash for the program's bound and a dot for that of packets, the mean of the repetitions at each place."""
    for name, marker, size in (("bound_bps", "_", 11), ("packet_bound_bps", ".", 3)):
        found = [point for point in bounds[name].get(method, []) if point.x in places]
        values = [(*point.values, *point.invalid) for point in found]
        axes.plot(
            [places[point.x] for point in found],
            [sum(each) / len(each) for each in values],
            marker,
            color=colour if marker == "_" else "black",
            markersize=size,
            zorder=4,
        )
