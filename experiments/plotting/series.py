"""Measured points with intervals: filled markers are valid, hollow ones doubtful, crosses invalid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from experiments.intervals import confidence_interval
from experiments.plotting.series_point import SeriesPoint
from experiments.plotting.style import COLOURS, MARKERS


def draw_series(
    axes: Any,
    points: Sequence[SeriesPoint],
    *,
    label: str | None,
    number: int,
    statistic: Literal["mean", "median"] = "mean",
    x_of: dict[Any, float] | None = None,
) -> None:
    """Draw one series in the colour and marker of its number: estimates with 95 % intervals, joined by a line.

    Doubtful points have hollow markers. Points of which every repetition is invalid are crosses off the line, and say
    only that something ran there. x_of: places of x values that are not numbers.
    """
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    places = [float(point.x) if x_of is None else x_of[point.x] for point in points]
    measured = sorted(
        (x, confidence_interval(point.values, statistic), point.verdict)
        for x, point in zip(places, points, strict=True)
        if point.values
    )
    axes.plot([x for x, *_ in measured], [i.estimate for _, i, _ in measured], color=colour, zorder=2)
    for x, interval, verdict in measured:
        known = not math.isnan(interval.low)
        axes.errorbar(
            [x],
            [interval.estimate],
            yerr=[[interval.estimate - interval.low], [interval.high - interval.estimate]] if known else None,
            color=colour,
            marker=marker,
            markerfacecolor="white" if verdict in ("doubtful", "unknown") else colour,
            linestyle="none",
            capsize=2.5,
            zorder=3,
        )
    for x, point in zip(places, points, strict=True):
        if not point.values:
            axes.plot([x] * len(point.invalid), point.invalid, "x", color=colour, alpha=0.5, zorder=1)
    axes.plot([], [], color=colour, marker=marker, label=label)


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
    """Entries in the legend for the marks that the figure has."""
    if {"doubtful", "unknown"} & set(verdicts):
        axes.plot([], [], "o", color="grey", markerfacecolor="white", label="doubtful or unknown (machine)")
    if "invalid" in verdicts:
        axes.plot([], [], "x", color="grey", label="invalid")
