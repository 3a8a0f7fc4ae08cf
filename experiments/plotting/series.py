"""Draw measured series with intervals.

Filled markers are valid results or those of the virtual clock, hollow ones are degraded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradbed.experiments.plotting.style import COLOURS, MARKERS, OTHER_CLOCK
from gradbed.experiments.tables.metric import Interval, confidence_interval
from gradbed.experiments.validity.verdict import VerdictWord


@dataclass(frozen=True)
class SeriesPoint:
    """Repetitions at one position of one series."""

    x: Any
    values: tuple[float, ...]
    """Values of the runs that were not invalid and did not fail."""
    invalid: tuple[float, ...]
    """Values of invalid runs."""
    verdict: VerdictWord
    """Worst verdict of the runs in `values`; invalid if there is none."""
    other_clock: tuple[float, ...] = ()
    """Values of repetitions on the other clock, which the verdict does not include."""


# ---- Series ----


Range = tuple[float | None, float | None]
"""Smallest and largest possible value; None: no such limit."""

Places = Mapping[Any, float]
"""Position of each value of x that is a word: nothing lies between them, so no line joins their points."""

Series = Mapping[Any, Sequence[SeriesPoint]]
"""Points of a figure by series, such as a value of a swept path."""

INTERVAL_FROM = 4
"""Number of repetitions from which an interval is drawn; of fewer, their values are."""

GROUP_WIDTH = 0.8
"""Width of all series at one word of x; words are 1 apart."""


def draw_all(
    axes: Any,
    series: Series,
    *,
    names: Mapping[Any, str] | None = None,
    numbers: Mapping[Any, int] | None = None,
    possible: Range = (0.0, None),
    is_labelled: bool = True,
    x_of: Places | None = None,
) -> None:
    """Draw every series, labelled by its key or name, in the colour of its position or number."""
    for place, (key, points) in enumerate(series.items()):
        draw_series(
            axes,
            points,
            label=(names or {}).get(key, str(key)) if is_labelled else None,
            number=place if numbers is None else numbers[key],
            possible=possible,
            x_of=x_of,
        )


def colour_numbers(labels: Iterable[Any], fixed: Mapping[str, int]) -> dict[Any, int]:
    """Return the colour number of each series: the fixed one of its name, else the smallest that is free."""
    named = list(dict.fromkeys(labels))
    numbers: dict[Any, int] = {}
    for label in named:
        number = fixed.get(str(label))
        if number is not None and number not in numbers.values():
            numbers[label] = number
    free = (number for number in itertools.count() if number not in set(numbers.values()))
    return {label: numbers[label] if label in numbers else next(free) for label in named}


def series_style(number: int) -> tuple[str, str]:
    """Return colour and marker of a series by its number."""
    again, place = divmod(number, len(COLOURS))
    return COLOURS[place], MARKERS[(place + again) % len(MARKERS)]


def draw_series(
    axes: Any,
    points: Sequence[SeriesPoint],
    *,
    label: str | None,
    number: int,
    statistic: Literal["mean", "median"] = "mean",
    x_of: Places | None = None,
    possible: Range = (0.0, None),
    bar_width: float | None = None,
) -> None:
    """Draw one series in the colour and marker of its number.

    Estimates have 95 % intervals and are joined by a line (without x_of), dashed once all colours are taken; with
    bar_width they are bars. Degraded points have hollow markers. Points of which every repetition is invalid are
    crosses off the line, and say only that something ran there. An interval that leaves the possible range is cut
    there, and a small arrow takes the place of its cap.

    Args:
        x_of: positions of x values that are words.
    """
    colour, marker = series_style(number)
    line = "none" if x_of is not None else "--" if number >= len(COLOURS) else "-"
    places = [float(point.x) if x_of is None else x_of[point.x] for point in points]
    measured = sorted(
        (x, confidence_interval(point.values, statistic), point.verdict, point.values)
        for x, point in zip(places, points, strict=True)
        if point.values
    )
    if x_of is None:
        axes.plot([x for x, *_ in measured], [i.estimate for _, i, *_ in measured], line, color=colour, zorder=2)
    for x, interval, verdict, values in measured:
        fill = "white" if verdict in ("degraded", "unknown") else colour
        if bar_width is not None:
            axes.bar([x], [interval.estimate], bar_width, facecolor=fill, edgecolor=colour, zorder=1)
        _draw_estimate(axes, x, interval, possible, colour, None if bar_width is not None else marker, fill, values)
    for x, point in zip(places, points, strict=True):
        if not point.values:
            axes.plot([x] * len(point.invalid), point.invalid, "x", color=colour, alpha=0.5, zorder=1)
        if point.other_clock:
            beside = [x] * len(point.other_clock)
            # On a bar of its own colour it would not be seen.
            edge = colour if bar_width is None else "black"
            axes.plot(beside, point.other_clock, OTHER_CLOCK, color=edge, **OPEN, zorder=4)
    if bar_width is not None:
        axes.plot([], [], linestyle="none", marker="s", markersize=8, color=colour, label=label)
    else:
        axes.plot([], [], linestyle=line, color=colour, marker=marker, label=label)


OPEN = {"markerfacecolor": "none", "markersize": 9, "linestyle": "none"}


def _draw_estimate(
    axes: Any,
    x: float,
    interval: Interval,
    possible: Range,
    colour: str,
    marker: str | None,
    fill: str,
    values: Sequence[float],
) -> None:
    """Draw a marker (bars have none) with its interval, which on bars is black.

    The intervals of two and three repetitions are up to thirteen and five times as wide as they are apart, and reach
    above bounds that no repetition exceeds: the values are drawn instead, as small dashes.
    """
    low, high = cut(interval, possible)
    has_bar = interval.has_width and interval.repetitions >= INTERVAL_FROM
    ends = "black" if marker is None else colour
    axes.errorbar(
        [x],
        [interval.estimate],
        yerr=[[interval.estimate - low], [high - interval.estimate]] if has_bar else None,
        color=ends,
        marker=marker,
        markerfacecolor=fill,
        linestyle="none",
        capsize=2.5,
        zorder=3,
    )
    if interval.has_width and not has_bar:
        axes.plot([x] * len(values), values, "_", color=ends, markersize=7, zorder=3)
    for end, whole, arrow in ((low, interval.low, "v"), (high, interval.high, "^")):
        if has_bar and end != whole:
            axes.plot([x], [end], arrow, color=ends, markersize=4, zorder=3)


def cut(interval: Interval, possible: Range) -> tuple[float, float]:
    """Return both ends of an interval within the possible range, but never on the wrong side of the estimate."""
    least, most = possible
    low = interval.low if least is None else max(interval.low, min(least, interval.estimate))
    high = interval.high if most is None else min(interval.high, max(most, interval.estimate))
    return low, high


def beside(places: Places, number: int, count: int) -> tuple[Places, float]:
    """Return the positions of one of `count` series beside the others' at every word, and the width of each."""
    width = GROUP_WIDTH / count
    shift = width * (number - (count - 1) / 2)
    return {word: place + shift for word, place in places.items()}, width


def draw_companion(
    axes: Any,
    points: Sequence[SeriesPoint],
    *,
    label: str | None,
    number: int | None,
    dashes: str,
    x_of: Places | None = None,
    width: float = GROUP_WIDTH,
) -> None:
    """Draw a bound or an analytic curve of a series, without markers.

    Args:
        number: of the series; None: for all of them, in black.
        x_of: positions of words, each of which gets a dash of that width.
    """
    colour = "black" if number is None else COLOURS[number % len(COLOURS)]
    curve = sorted(
        (
            float(point.x) if x_of is None else x_of[point.x],
            confidence_interval((*point.values, *point.invalid)).estimate,
        )
        for point in points
    )
    style = {"color": colour, "linewidth": 1.0, "zorder": 1}
    if x_of is None:
        axes.plot(*zip(*curve, strict=True), dashes, label=label, **style)
        return
    for x, y in curve:
        axes.plot([x - width / 2, x + width / 2], [y, y], dashes, **{**style, "zorder": 4})
    axes.plot([], [], dashes, label=label, **style)


def draw_saturation(axes: Any, at: Sequence[float], *, label: str | None, number: int | None) -> None:
    """Draw vertical lines at the x from which a series saturates.

    Args:
        number: of the series; None: all of them, in black.
    """
    colour = "black" if number is None else COLOURS[number % len(COLOURS)]
    for x in sorted(set(at)):
        axes.axvline(x, color=colour, linestyle=":", linewidth=1.2, zorder=1)
    axes.plot([], [], ":", color="black", linewidth=1.0, label=label)


def verdicts(series: Series) -> list[VerdictWord]:
    """Return the verdicts of all points of the series."""
    return [point.verdict for points in series.values() for point in points]


def explain_marks(axes: Any, verdicts: Iterable[str]) -> None:
    """Add legend entries for the marks that the figure has, including the diamonds of the other clock."""
    if any(line.get_marker() == OTHER_CLOCK and line.get_markersize() == OPEN["markersize"] for line in axes.lines):
        axes.plot([], [], OTHER_CLOCK, color="grey", **OPEN, label="Mininet, real time")
    found = set(verdicts)
    if {"degraded", "unknown"} & found:
        axes.plot([], [], "o", color="grey", markerfacecolor="white", label="degraded or unknown (host)")
    if "invalid" in found:
        axes.plot([], [], "x", color="grey", label="invalid")
