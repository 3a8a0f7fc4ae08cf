"""Figures of kind distribution: which share of all values is at most so large, for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.plotting.series import series_style
from gradbed.experiments.plotting.style import COLOURS, NothingToDraw
from gradbed.experiments.records.results import StudyResults, single
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation.kinds import Sheet, label_axes, metric_label, panel_kind
from gradbed.experiments.tables.words import path_words, short_names

ROUNDING = 1e-12
"""Of sums of shares."""

SHARES = (0.0, *(percent / 100 for percent in range(1, 100)), 0.999, 1.0)
"""Those of which data/NAME_FIGURE.csv has the values."""


@dataclass(frozen=True)
class Distribution:
    """An empirical one. values: different ones, rising; shares: of all values, those that are at most so large."""

    values: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float]) -> Distribution:
        """weights: how many values each one stands for."""
        different, places = np.unique(values, return_inverse=True)
        sums = np.cumsum(np.bincount(places, weights))
        return cls(different, sums / sums[-1])

    def quantile(self, share: float) -> float:
        """The least value that so large a share does not exceed."""
        return float(self.values[np.searchsorted(self.shares, share - ROUNDING)])


def distributions(results: StudyResults, section: FigureSection) -> dict[Any, Distribution]:
    """By value of the series, in the order of the study: of all repetitions, and of whatever else is swept. Points
    that failed or are invalid claim nothing. NothingToDraw without any value, or without such a column of numbers."""
    good = [point for point in results.points if point.stored.is_good]
    rows = [row for p in good for row in ([p.row] if section.table is None else p.table(section.table))]
    _check_columns(rows, [section.shown, *([section.weight] if section.weight else [])])
    pairs: dict[Any, list[tuple[float, float]]] = {}
    for row in rows:
        value, weight = row.get(section.shown), 1 if section.weight is None else row.get(section.weight)
        if value is not None and weight:
            label = None if section.series is None else single(row[section.series])
            pairs.setdefault(label, []).append((float(value), float(weight)))
    if not pairs:
        raise NothingToDraw
    return {label: Distribution.of(*zip(*found, strict=True)) for label, found in pairs.items()}


def _check_columns(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    for column in columns:
        values = [row[column] for row in rows if column in row]
        if rows and not values:
            raise NothingToDraw(f"its table has no column {column}, only {', '.join(rows[0])}")
        if words := next((value for value in values if isinstance(value, str)), None):
            raise NothingToDraw(f"{column} has words in its table, such as {words}: a distribution is of numbers")


@panel_kind("distribution")
def draw_distribution(sheet: Sheet) -> str:
    """A rising staircase for each series, with a mark at its median."""
    [axes], section = sheet.axes, sheet.section
    found = distributions(sheet.results, section)
    names = dict(zip(found, short_names(list(found)), strict=True))
    for number, (label, each) in enumerate(found.items()):
        colour, marker = series_style(number)
        axes.plot(
            [each.values[0], *each.values],
            [0.0, *each.shares],
            "--" if number >= len(COLOURS) else "-",
            drawstyle="steps-post",
            color=colour,
            label=None if label is None else section.names.get(str(label), names[label]),
        )
        axes.plot([each.quantile(0.5)], [0.5], marker, color=colour)
    axes.plot([], [], "o", color="grey", label="median")
    axes.set_xscale(section.x_scale)
    metric = None if section.table is not None else sheet.metrics.get(section.x)
    x = path_words(section.x) if metric is None else metric_label(metric, section.normalised)
    label_axes(axes, section, x, f"share of {section.weight or section.table or 'points'}")
    return sheet.results.heading_of_all


def quantile_rows(results: StudyResults, section: FigureSection) -> list[dict[str, Any]]:
    """What the figure shows, as rows: by series, the value that each of SHARES does not exceed. NothingToDraw as of
    distributions."""
    return [
        {**({} if section.series is None else {section.series: label}), "share": share, section.shown: value}
        for label, each in distributions(results, section).items()
        for share, value in zip(SHARES, map(each.quantile, SHARES), strict=True)
    ]
