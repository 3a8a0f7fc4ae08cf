"""Figures of kind course: what further tables of points tell from step to step."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from gradbed.experiments.plotting.series import Range, cut
from gradbed.experiments.plotting.style import COLOURS, NothingToDraw
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.definition.model import CourseSection
from gradbed.experiments.study.evaluation.kinds import Sheet, label_axes, panel_kind
from gradbed.experiments.tables.intervals import Interval, confidence_interval
from gradbed.experiments.tables.words import short_names

Row = Mapping[str, Any]
Key = tuple[Any, bool, str | None]
"""Of a line: value of the series, whether it is dashed, the point that it is of if it is of one alone."""


@dataclass
class Course:
    """One line: at each step x and y of the repetitions; row: one of those that it is of."""

    row: Row
    steps: dict[Any, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def xs(self) -> list[float]:
        """Means over repetitions, in the order of steps."""
        return [sum(x for x, _ in found) / len(found) for _, found in sorted(self.steps.items())]

    @property
    def ys(self) -> list[Interval]:
        """As xs, with their intervals."""
        return [confidence_interval([y for _, y in found]) for _, found in sorted(self.steps.items())]


def courses(results: StudyResults, section: CourseSection, series: str | None) -> dict[Key, Course]:
    """In the order of the study; of first repetitions one for each point. Rows without y are left out."""
    found: dict[Key, Course] = {}
    for point in results.points:
        if section.repetitions == "first" and point.repetition > 0:
            continue
        for row, x, y in course_of(point, section):
            dashed = any(row[column] == value for column, value in section.dashed.items())
            alone = point.stored.digest if section.repetitions == "first" else None
            key = (row[series] if series is not None else None, dashed, alone)
            found.setdefault(key, Course(row)).steps[row[section.step]].append((x, y))
    return found


def course_of(point: DonePoint, section: CourseSection) -> Iterable[tuple[Row, float, float]]:
    """The rows of one point in order, with their x and y."""
    rows = sorted(point.table(section.table), key=lambda row: row[section.step])
    shown = [row for row in rows if row.get(section.y) is not None]
    xs = [section.x_times * row[section.x or section.step] for row in shown]
    ys = [section.y_times * float(row[section.y]) for row in shown]
    return zip(shown, accumulate(xs) if section.cumulative else xs, ys, strict=True)


def draw_line(
    axes: Any,
    xs: Sequence[float],
    ys: Sequence[Interval],
    *,
    label: str | None,
    number: int,
    dashed: bool = False,
    has_band: bool = True,
    possible: Range = (None, None),
) -> None:
    """A line in the colour of its number, with dots once all colours are taken; around it, where repetitions differ,
    the intervals as far as they are possible."""
    again, place = divmod(number, len(COLOURS))
    axes.plot(
        xs,
        [y.estimate for y in ys],
        "--" if dashed else "-",
        color=COLOURS[place],
        marker="." if again or len(xs) == 1 else "",
        label=label,
    )
    if has_band and any(y.has_width for y in ys):
        low, high = zip(*(cut(y, possible) for y in ys), strict=True)
        axes.fill_between(xs, low, high, color=COLOURS[place], alpha=0.12, linewidth=0)


@panel_kind("course")
def draw_course(sheet: Sheet) -> str | None:
    """A colour for each value of the series, full and dashed."""
    [axes], section, course = sheet.axes, sheet.section, sheet.section.course
    assert course is not None
    found = courses(sheet.results, course, section.series)
    if not found:
        raise NothingToDraw
    rows = [line.row for line in found.values()]
    numbers = {value: number for number, value in enumerate(dict.fromkeys(value for value, *_ in found))}
    metric = sheet.metrics.get(section.y)
    possible = (None, None) if metric is None else metric.possible
    least, most = (None if limit is None else course.y_times * limit for limit in possible)
    for (value, dashed, _), line in found.items():
        draw_line(
            axes,
            line.xs,
            line.ys,
            label=None if dashed and course.dashed_label else _filled_in(course.label, line.row, rows) or None,
            number=numbers[value],
            dashed=dashed,
            has_band=course.repetitions == "interval",
            possible=(least, most),
        )
    if course.dashed_label:
        axes.plot([], [], "--", color="grey", label=course.dashed_label)
    axes.set_xscale(section.x_scale)
    if course.x is None:
        axes.xaxis.get_major_locator().set_params(integer=True)
    label_axes(axes, section, course.x or course.step, course.y)
    return sheet.results.heading_of_first if course.repetitions == "first" else None


def _filled_in(label: str, row: Row, rows: Sequence[Row]) -> str:
    """Columns in braces are replaced by what the row has there, as far as it tells it from all others."""

    def words(found: re.Match[str]) -> str:
        values = [row[found[1]], *(each[found[1]] for each in rows)]
        return short_names(values)[0]

    return re.sub(r"\{(.+?)\}", words, label)
