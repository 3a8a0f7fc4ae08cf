"""The kinds of figures: what draws a figure's panels, and how large they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError

from gradbed.common.problems import first_problem
from gradbed.experiments.plotting.series import Series, SeriesPoint, colour_numbers
from gradbed.experiments.plotting.style import set_scaled_axis
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.definition import FigureSection, with_values
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.metric import Metric, confidence_interval, path_words, short_names

HEADROOM = 1.05

Count = int | Callable[[StudyResults, FigureSection], int]


@dataclass(frozen=True)
class Sheet:
    """Axes of a figure, and the results to draw on them."""

    axes: Sequence[Any]
    """Axes of the panels, row by row."""
    results: StudyResults
    section: FigureSection
    metrics: Mapping[str, Metric]
    left_out: set[tuple[str, float]] = field(default_factory=set)
    """Axis (x or y) and value of what a log axis cannot show; the same set for all panels."""

    def numbers(self, labels: Iterable[Any]) -> dict[Any, int]:
        """Return the colour number of each series: that which its name has in all figures of the system."""
        system = self.results.resolved.get("system")
        fixed = {} if system is None else find_system(str(system)).report.colours
        return colour_numbers(labels, {**fixed, **self.section.colours})

    def has_place(self, axis: str, value: float) -> bool:
        """Return whether a log axis has a place for the value; if not, note that it is left out."""
        if value > 0:
            return True
        self.left_out.add((axis, value))
        return False

    def on_log_axes(
        self, series: Series, *, x: bool = False, y: bool = False, statistic: Literal["mean", "median"] = "mean"
    ) -> dict[Any, list[SeriesPoint]]:
        """Return the values that log axes have a place for, and note what is left out.

        Args:
            x: whether the x axis is logarithmic.
            y: whether the y axis is.
        """
        found: dict[Any, list[SeriesPoint]] = {}
        for label, points in series.items():
            shown = found.setdefault(label, [])
            for point in points:
                if x and not self.has_place("x", point.x):
                    continue
                if y:
                    values, invalid, other_clock = point.values, point.invalid, point.other_clock
                    # An estimate from those repetitions alone that are above 0 would be a wrong one.
                    if values and not self.has_place("y", confidence_interval(values, statistic).estimate):
                        continue
                    invalid = tuple(value for value in invalid if self.has_place("y", value))
                    other_clock = tuple(value for value in other_clock if self.has_place("y", value))
                    if not (values or invalid):
                        continue
                    point = replace(point, invalid=invalid, other_clock=other_clock)
                shown.append(point)
        return found


Draw = Callable[[Sheet], str | None]
"""Returns what stands above the figure, if that is not StudyResults.heading."""


@dataclass(frozen=True)
class Kind:
    """Sizes are of each panel, in inches."""

    draw: Draw
    columns: Count
    rows: Count
    width_in: float
    height_in: float


KINDS: dict[str, Kind] = {}
"""By the word after `kind:` of a figure. Systems may add theirs when their module is imported."""


def figure_kind(
    name: str, *, columns: Count = 1, rows: Count = 1, width_in: float = 4.8, height_in: float = 3.3
) -> Callable[[Draw], Draw]:
    """Makes a kind of figure of the function that draws it. It may raise NothingToDraw
    (gradbed.experiments.plotting.style), which also comes of a figure without columns or rows."""

    def add(draw: Draw) -> Draw:
        KINDS[name] = Kind(draw, columns, rows, width_in, height_in)
        return draw

    return add


def panel_kind(*names: str) -> Callable[[Draw], Draw]:
    """Makes kinds of the function that draws one panel: a figure has one for each that its section asks for."""

    def add(draw_panel: Draw) -> Draw:
        def draw(sheet: Sheet) -> str | None:
            heading = None
            for panel, section in zip(sheet.axes, panels_of(sheet.section), strict=False):
                heading = draw_panel(replace(sheet, axes=[panel], section=section))
            _put_legend(sheet.axes, sheet.section)
            return heading

        for name in names:
            figure_kind(
                name,
                columns=lambda _, section: section.panel_columns or len(panels_of(section)),
                rows=lambda _, section: -(-len(panels_of(section)) // (section.panel_columns or 1000)),
            )(draw)
        return draw_panel

    return add


def panels_of(section: FigureSection) -> list[FigureSection]:
    """Return the sections of a figure's panels; itself if it has none.

    Raises:
        ValueError: a panel is wrong.
    """
    common = section.model_dump(exclude_unset=True, exclude={"panels"})
    try:
        changed = [FigureSection.model_validate(with_values(common, changes)) for changes in section.panels]
    except KeyError as error:
        raise ValueError(f"{error.args[0]} has no parts") from None
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    return changed or [section]


def _put_legend(panels: Sequence[Any], section: FigureSection) -> None:
    # Bars leave no room.
    columns = section.legend_columns or (2 if section.kind == "bars" else None)
    if columns is not None:
        legend_below(panels, columns)
    elif panels[0].get_legend_handles_labels()[1]:
        panels[0].legend()


def legend_below(panels: Any, columns: int) -> None:
    """Put the legend of a panel, or of several with each name once, below all panels of their figure."""
    each = panels if isinstance(panels, Sequence) else [panels]
    entries: dict[str, Any] = {}
    for panel in each:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        each[0].figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def metric_label(metric: Metric, normalised: bool, name: str | None = None, unit: str | None = None) -> str:
    """Return the label of an axis.

    Args:
        normalised: whether values are in units of the link rate.
        name: what stands in place of the metric's meaning.
        unit: the metric's own with an SI prefix; None: without one.
    """
    name = name or metric.meaning
    if normalised:
        return f"{name} " + ("/ link rate" if metric.scales == "rate" else "x link rate (bit)")
    unit = metric.unit if unit is None else unit
    return f"{name} ({unit})" if unit else name


def scale_y(axes: Any, metric: Metric | None, section: FigureSection) -> str | None:
    """Let y count in the SI prefix of what is drawn, and return the metric's label, which names it.

    A label of the section that ends with a unit, in parentheses, stays as it is; values are in the metric's then.
    """
    if metric is None or section.normalised:
        return None if metric is None else section.y_label or metric_label(metric, True)
    if section.y_label is not None and (section.y_label.endswith(")") or not metric.unit):
        return section.y_label
    axes.set_yscale(section.y_scale)
    unit = set_scaled_axis(
        axes.yaxis, [value for value in axes.dataLim.intervaly if math.isfinite(value)], metric.unit
    )
    return metric_label(metric, False, section.y_label, unit)


def name_series(section: FigureSection, labels: Iterable[Any]) -> dict[Any, str]:
    """Return the legend entry of each series: numbers with the name of what was swept, and its unit."""
    found = list(labels)
    shown = short_names(found)
    if section.series is not None and all(isinstance(label, int | float) for label in found):
        name, _, unit = path_words(section.series).partition(" (")
        shown = [f"{name} {label:,}{f' {unit[:-1]}' if unit else ''}" for label in found]
    return {label: section.names.get(str(label), word) for label, word in zip(found, shown, strict=True)}


def label_axes(axes: Any, section: FigureSection, x: str, y: str) -> None:
    """Set the labels (x unless the section has one, y), limits and scale of y as a section has them."""
    if axes.get_yscale() != section.y_scale:
        axes.set_yscale(section.y_scale)
    if section.y_limits is not None:
        axes.set_ylim(*section.y_limits)
    elif section.y_scale == "linear":
        # Where all values are nearly the same, the room above them would be next to none.
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], HEADROOM * axes.dataLim.y1))
    if section.x_from is not None:
        axes.set_xlim(left=section.x_from)
    axes.set_xlabel(section.x_label or x)
    axes.set_ylabel(y)
    if section.title:
        axes.set_title(section.title)
