"""The figures that a study's file asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.plotting.series import (
    GROUP_WIDTH,
    Places,
    beside,
    draw_companion,
    draw_saturation,
    draw_series,
    explain_marks,
)
from experiments.plotting.series_point import SeriesPoint
from experiments.plotting.style import NothingToDraw, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric
from experiments.tables.words import path_words

Series = dict[Any, list[SeriesPoint]]


def draw_figures(
    results: StudyResults,
    figures: Mapping[str, FigureSection],
    metrics: Mapping[str, Metric],
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Draw every figure that has points, into the run's folder; the files. say: takes a line for each other one."""
    written: list[Path] = []
    for name, section in figures.items():
        try:
            if not any(results.series(section.x, section.y, section.series).values()):
                raise NothingToDraw
            written += KINDS[section.kind](results, section, metrics, results.folder / name)
        except NothingToDraw:
            say(f"no figure {name}: there is no point to draw, as none that it shows has ended with a result")
    return written


def draw_lines(
    results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path
) -> list[Path]:
    """y against x for each series, with 95 % intervals, bound, expected curve and saturation: lines, points where x
    are words, or bars."""
    suffix = "_normalised" if section.normalised else ""
    measured = results.series(section.x, section.y + suffix, section.series)
    is_bars = section.kind == "bars"
    places = _places(measured, is_bars)
    metric = metrics.get(section.y)
    possible = (0.0, None) if metric is None else metric.possible
    with figure() as (made, [axes]):
        for number, (label, points) in enumerate(measured.items()):
            at, width = beside(places, number, len(measured)) if places else (None, None)
            draw_series(
                axes,
                points,
                label=_word(label),
                number=number,
                statistic=section.statistic,
                x_of=at,
                possible=possible,
                bar_width=width if is_bars else None,
            )
        for companion, dashes, word in ((section.bound, "--", "bound"), (section.expected, ":", "expected")):
            if companion is not None:
                _draw_companions(axes, results, section, companion + suffix, dashes, word, places)
        if section.saturation is not None:
            _draw_saturations(axes, results, section, section.saturation)
        verdicts = [point.verdict for points in measured.values() for point in points]
        explain_marks(axes, verdicts)
        whole_numbers = all(isinstance(point.x, int) for points in measured.values() for point in points)
        _label_axes(axes, section, metrics, places, whole_numbers)
        return save(made, path, results.heading)


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


def _label_axes(
    axes: Any,
    section: FigureSection,
    metrics: Mapping[str, Metric],
    places: Places | None,
    whole_numbers: bool,
) -> None:
    if places is None:
        axes.set_xscale(section.x_scale)
        if whole_numbers and section.x_scale == "linear":
            axes.xaxis.get_major_locator().set_params(integer=True)
    else:
        axes.set_xticks(list(places.values()), [_word(value) for value in places])
    axes.set_yscale(section.y_scale)
    if section.y_scale == "linear":
        axes.set_ylim(bottom=0)
    axes.set_xlabel(section.x_label or path_words(section.x))
    axes.set_ylabel(section.y_label or _y_label(section, metrics))
    if section.title:
        axes.set_title(section.title)
    handles, labels = axes.get_legend_handles_labels()
    if labels and section.kind == "bars":  # bars leave no room
        axes.figure.legend(handles, labels, loc="outside lower center", ncols=2)
    elif labels:
        axes.legend()


def _y_label(section: FigureSection, metrics: Mapping[str, Metric]) -> str:
    metric = metrics.get(section.y)
    if metric is None:
        return section.y
    if section.normalised:
        return f"{metric.meaning} " + ("/ link rate" if metric.scales == "rate" else "x link rate (bit)")
    return f"{metric.meaning} ({metric.unit})" if metric.unit else metric.meaning


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


KINDS: dict[str, Callable[[StudyResults, FigureSection, Mapping[str, Metric], Path], list[Path]]] = {
    "lines": draw_lines,
    "bars": draw_lines,
}
"""By the word after `kind:` of a figure. Systems may add theirs when their module is imported."""
