"""Measured points with intervals: filled markers are valid or of the virtual clock, hollow ones doubtful, crosses
invalid; open diamonds were measured on the other clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from experiments.intervals import Interval, confidence_interval
from experiments.plotting.series_point import SeriesPoint
from experiments.plotting.style import COLOURS, MARKERS, OTHER_CLOCK

Range = tuple[float | None, float | None]
"""Least and most that a number can be; None: no such limit."""


def draw_series(
    axes: Any,
    points: Sequence[SeriesPoint],
    *,
    label: str | None,
    number: int,
    statistic: Literal["mean", "median"] = "mean",
    x_of: dict[Any, float] | None = None,
    possible: Range = (0.0, None),
) -> None:
    """Draw one series in the colour and marker of its number: estimates with 95 % intervals, joined by a line, dashed
    once all colours are taken.

    Doubtful points have hollow markers. Points of which every repetition is invalid are crosses off the line, and say
    only that something ran there. x_of: places of x values that are not numbers. An interval that leaves what is
    possible is cut there, and a small arrow takes the place of its cap.
    """
    again, place = divmod(number, len(COLOURS))
    colour, marker = COLOURS[place], MARKERS[(place + again) % len(MARKERS)]
    line = "--" if again else "-"
    places = [float(point.x) if x_of is None else x_of[point.x] for point in points]
    measured = sorted(
        (x, confidence_interval(point.values, statistic), point.verdict)
        for x, point in zip(places, points, strict=True)
        if point.values
    )
    axes.plot([x for x, *_ in measured], [i.estimate for _, i, _ in measured], line, color=colour, zorder=2)
    for x, interval, verdict in measured:
        known = not math.isnan(interval.low)
        low, high = cut(interval, possible)
        axes.errorbar(
            [x],
            [interval.estimate],
            yerr=[[interval.estimate - low], [high - interval.estimate]] if known else None,
            color=colour,
            marker=marker,
            markerfacecolor="white" if verdict in ("doubtful", "unknown") else colour,
            linestyle="none",
            capsize=2.5,
            zorder=3,
        )
        for end, whole, arrow in ((low, interval.low, "v"), (high, interval.high, "^")):
            if known and end != whole:
                axes.plot([x], [end], arrow, color=colour, markersize=4, zorder=3)
    for x, point in zip(places, points, strict=True):
        if not point.values:
            axes.plot([x] * len(point.invalid), point.invalid, "x", color=colour, alpha=0.5, zorder=1)
        if point.other_clock:
            beside = [x] * len(point.other_clock)
            axes.plot(beside, point.other_clock, OTHER_CLOCK, color=colour, **OPEN, zorder=4)
    axes.plot([], [], line, color=colour, marker=marker, label=label)


OPEN = {"markerfacecolor": "none", "markersize": 9, "linestyle": "none"}


def cut(interval: Interval, possible: Range) -> tuple[float, float]:
    """Both ends of an interval, as far as they are possible; but never on the wrong side of the estimate."""
    least, most = possible
    low = interval.low if least is None else max(interval.low, min(least, interval.estimate))
    high = interval.high if most is None else min(interval.high, max(most, interval.estimate))
    return low, high


def draw_companion(
    axes: Any,
    points: Sequence[SeriesPoint],
    *,
    label: str | None,
    number: int | None,
    dashes: str,
    x_of: dict[Any, float] | None = None,
) -> None:
    """A bound or an analytic curve that goes with a series (number None: with all, in black), without markers."""
    colour = "black" if number is None else COLOURS[number % len(COLOURS)]
    curve = sorted(
        (
            float(point.x) if x_of is None else x_of[point.x],
            confidence_interval((*point.values, *point.invalid)).estimate,
        )
        for point in points
    )
    axes.plot(*zip(*curve, strict=True), dashes, color=colour, linewidth=1.0, label=label, zorder=1)


def explain_marks(axes: Any, verdicts: Sequence[str]) -> None:
    """Entries in the legend for the marks that the figure has, the diamonds of the other clock among them."""
    if any(line.get_marker() == OTHER_CLOCK and line.get_markersize() == OPEN["markersize"] for line in axes.lines):
        axes.plot([], [], OTHER_CLOCK, color="grey", **OPEN, label="Mininet, real time")
    if {"doubtful", "unknown"} & set(verdicts):
        axes.plot([], [], "o", color="grey", markerfacecolor="white", label="doubtful or unknown (machine)")
    if "invalid" in verdicts:
        axes.plot([], [], "x", color="grey", label="invalid")
