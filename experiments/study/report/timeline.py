"""When what happened: faults as marks, and each kind of event from its first to its last, on one axis for a phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.tables.units import engineering

WIDTH, LEFT, RIGHT, ROW, TOP = 720.0, 220.0, 30.0, 22.0, 8.0
"""In the drawing's own units."""
MOST = 24
"""Time lines of a page."""


@dataclass(frozen=True)
class Mark:
    """x, until: in the drawing; the same for a moment."""

    y: float
    x: float
    until: float
    kind: str
    name: str
    words: str


@dataclass(frozen=True)
class Tick:
    x: float
    words: str


@dataclass(frozen=True)
class TimelineView:
    heading: str
    height: float
    marks: Sequence[Mark]
    ticks: Sequence[Tick]
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT


@dataclass(frozen=True)
class Timelines:
    drawn: Sequence[TimelineView]
    left_out: int


def timelines(run: Run) -> Timelines:
    """Of the first repetition at each place of the sweep, phase by phase."""
    found: list[TimelineView] = []
    left_out = 0
    for point in run.results.points:
        if point.repetition:
            continue
        phases: dict[str, list[Mapping[str, Any]]] = {}
        for row in point.stored.tables.get("timeline", []):
            phases.setdefault(str(row["phase"]), []).append(row)
        place = point.place_text.removesuffix(": ")
        for phase, rows in phases.items():
            if len(found) < MOST:
                found.append(_view(f"{place}{': ' if place else ''}{phase}", rows))
            else:
                left_out += 1
    return Timelines(found, left_out)


def _view(heading: str, rows: Sequence[Mapping[str, Any]]) -> TimelineView:
    from matplotlib.ticker import MaxNLocator

    end_us = max(max(float(row["last_us"]) for row in rows), 1.0)
    scale = (WIDTH - LEFT - RIGHT) / end_us
    marks = []
    for number, row in enumerate(rows):
        first_us, last_us = float(row["time_us"]), float(row["last_us"])
        times = engineering(first_us / 1e6, "s")
        if last_us > first_us:
            times = f"{row['count']} from {times} to {engineering(last_us / 1e6, 's')}"
        elif row["count"] > 1:
            times = f"{row['count']} at {times}"
        y = TOP + ROW * (number + 0.5)
        marks.append(
            Mark(
                y,
                LEFT + scale * first_us,
                LEFT + scale * last_us,
                row["what"],
                row["name"],
                f"{row['name']}: {times}",
            )
        )
    ticks = [
        Tick(LEFT + scale * time_us, engineering(time_us / 1e6, "s"))
        for time_us in MaxNLocator(5).tick_values(0.0, end_us)
        if 0 <= time_us <= end_us
    ]
    return TimelineView(heading, TOP + ROW * (len(rows) + 1.2), marks, ticks)
