"""Figures of kinds lines and bars: y against x of the points table, for each series."""

from __future__ import annotations

from typing import Any

from gradbed.experiments.plotting.series import (
    GROUP_WIDTH,
    Places,
    Series,
    beside,
    draw_companion,
    draw_saturation,
    draw_series,
    explain_marks,
    verdicts,
)
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation.kinds import Sheet, label_axes, metric_label, panel_kind
from gradbed.experiments.tables.words import path_words, short_names


@panel_kind("lines", "bars")
def draw_lines(sheet: Sheet) -> None:
    """y against x for each series, with 95 % intervals, bound, expected curve and saturation: lines, points where x
    are words, or bars."""
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    suffix = "_normalised" if section.normalised else ""
    measured = results.series(section.x, section.shown, section.series)
    is_bars = section.kind == "bars"
    places = _places(measured, is_bars)
    metric = sheet.metrics.get(section.y)
    names = dict(zip(measured, short_names(list(measured)), strict=True))
    for number, (label, points) in enumerate(measured.items()):
        at, width = beside(places, number, len(measured)) if places else (None, None)
        draw_series(
            axes,
            points,
            label=None if label is None else section.names.get(str(label), names[label]),
            number=number,
            statistic=section.statistic,
            x_of=at,
            possible=(0.0, None) if metric is None else metric.possible,
            bar_width=width if is_bars else None,
        )
    for companion, dashes, word in ((section.bound, "--", "bound"), (section.expected, ":", "expected")):
        if companion is not None:
            _draw_companions(axes, results, section, companion + suffix, dashes, word, places)
    if section.saturation is not None:
        _draw_saturations(axes, results, section, section.saturation)
    explain_marks(axes, verdicts(measured))
    if places is not None:
        axes.set_xticks(list(places.values()), short_names(list(places)))
    else:
        axes.set_xscale(section.x_scale)
        whole_numbers = all(isinstance(point.x, int) for points in measured.values() for point in points)
        if whole_numbers and section.x_scale == "linear":
            axes.xaxis.get_major_locator().set_params(integer=True)
    label = section.y if metric is None else metric_label(metric, section.normalised)
    label_axes(axes, section, path_words(section.x), label)


def _draw_companions(
    axes: Any,
    results: StudyResults,
    section: FigureSection,
    column: str,
    dashes: str,
    word: str,
    places: Places | None,
) -> None:
    """One curve if it is the same for all series, else one for each."""
    found = results.series(section.x, column, section.series)
    curves = {tuple((point.x, (*point.values, *point.invalid)[0]) for point in points) for points in found.values()}
    together = len(curves) == 1
    for number, points in enumerate(list(found.values())[: 1 if together else None]):
        at, width = (places, GROUP_WIDTH) if places is None or together else beside(places, number, len(found))
        draw_companion(
            axes, points, label=None, number=None if together else number, dashes=dashes, x_of=at, width=width
        )
    axes.plot([], [], dashes, color="black", linewidth=1.0, label=word)


def _draw_saturations(axes: Any, results: StudyResults, section: FigureSection, column: str) -> None:
    found = [
        {value for point in points for value in (*point.values, *point.invalid)}
        for points in results.series(section.x, column, section.series).values()
    ]
    together = len({frozenset(each) for each in found}) == 1
    for number, each in enumerate(found[: 1 if together else None]):
        draw_saturation(
            axes, list(each), label="saturation" if not number else None, number=None if together else number
        )


def _places(series: Series, is_bars: bool) -> dict[Any, float] | None:
    """Where x values that are not numbers go, and those of bars: 0, 1, 2, ... None if all are numbers."""
    values = list(dict.fromkeys(point.x for points in series.values() for point in points))
    if not is_bars and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return None
    return {value: float(index) for index, value in enumerate(values)}
