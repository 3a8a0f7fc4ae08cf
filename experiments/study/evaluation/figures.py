"""The figures that a study's file asks for: the kinds that every study has, the drawing of each, and what they show
as one small table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.configuration.sections import link_classes
from gradbed.experiments.plotting.series import (
    GROUP_WIDTH,
    Places,
    Range,
    Series,
    SeriesPoint,
    beside,
    cut,
    draw_companion,
    draw_saturation,
    draw_series,
    explain_marks,
    series_style,
    verdicts,
)
from gradbed.experiments.plotting.style import COLOURS, NothingToDraw, figure, save, set_scaled_axis
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults, single
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import CourseSection, FigureSection, Study
from gradbed.experiments.study.evaluation.kinds import (
    HEADROOM,
    KINDS,
    Kind,
    Sheet,
    figure_kind,
    label_axes,
    metric_label,
    name_series,
    panel_kind,
    panels_of,
    scale_y,
)
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.files import replace_file, write_csv
from gradbed.experiments.tables.metric import (
    Interval,
    Metric,
    column_words,
    confidence_interval,
    path_words,
    short_names,
)
from gradbed.topo.graph import Topology

# ---- Kinds lines and bars: y against x of the trials table ----


@panel_kind("lines", "bars")
def draw_lines(sheet: Sheet) -> None:
    """Draw y against x for each series, with 95 % intervals, bound, expected curve and saturation.

    Series are lines, points where x are words, or bars.
    """
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    suffix = "_normalised" if section.normalised else ""
    measured = results.series(section.x, section.shown, section.series)
    is_bars = section.kind == "bars"
    places = _places(measured, is_bars)
    measured = _on_axes(sheet, measured, places)
    if sheet.left_out and not any(measured.values()):
        raise NothingToDraw("no value has a place on its log axis")
    metric = sheet.metrics.get(section.y)
    names, numbers = name_series(section, measured), sheet.numbers(measured)
    for place, (label, points) in enumerate(measured.items()):
        at, width = beside(places, place, len(measured)) if places else (None, None)
        draw_series(
            axes,
            points,
            label=None if label is None else names[label],
            number=numbers[label],
            statistic=section.statistic,
            x_of=at,
            possible=(0.0, None) if metric is None else metric.possible,
            bar_width=width if is_bars else None,
        )
    for companion, dashes, word in ((section.bound, "--", "bound"), (section.expected, ":", "expected")):
        if companion is not None:
            _draw_companions(sheet, companion + suffix, dashes, word, places)
    if section.saturation is not None:
        _draw_saturations(sheet, section.saturation)
    explain_marks(axes, verdicts(measured))
    if places is not None:
        axes.set_xticks(list(places.values()), [section.names.get(name, name) for name in short_names(list(places))])
    else:
        _scale_x(axes, section, [point.x for points in measured.values() for point in points])
    label_axes(axes, section, path_words(section.x), scale_y(axes, metric, section) or section.y_label or section.y)


def _on_axes(sheet: Sheet, series: Series, places: Places | None) -> dict[Any, list[SeriesPoint]]:
    section = sheet.section
    is_log_x = section.x_scale == "log" and places is None
    return sheet.on_log_axes(series, x=is_log_x, y=section.y_scale == "log", statistic=section.statistic)


def _scale_x(axes: Any, section: FigureSection, xs: Sequence[float]) -> None:
    """Set the scale of x, with a tick at every x unless there are many.

    A symlog axis from 0 is linear up to the smallest x above it.
    """
    above = [x for x in xs if x > 0]
    is_from_zero = section.x_scale == "symlog" and bool(above) and min(xs) >= 0
    if is_from_zero:
        axes.set_xscale("symlog", linthresh=min(above))
        axes.set_xlim(left=0)
    else:
        axes.set_xscale(section.x_scale)
    ticks = sorted(set(xs))
    if is_from_zero or len(ticks) <= MOST_TICKS:
        axes.set_xticks(ticks, tick_texts(section.x, ticks))
        axes.set_xticks([], minor=True)
    elif section.x_scale == "linear" and all(isinstance(x, int) for x in ticks):
        axes.xaxis.get_major_locator().set_params(integer=True)


MOST_TICKS = 12
"""Number of different x up to which each has a tick."""


def tick_texts(path: str, values: Sequence[float]) -> list[str]:
    """Return swept numbers as the texts of ticks; sizes in bytes that are multiples of 1,024 with binary prefixes."""
    if path.endswith("_bytes") and all(value and value % 1024 == 0 for value in values):
        return [f"{value / 2**20:g} MiB" if value >= 2**20 else f"{value / 2**10:g} KiB" for value in values]
    return [f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values]


def _draw_companions(sheet: Sheet, column: str, dashes: str, word: str, places: Places | None) -> None:
    """Draw one curve if it is the same for all series, else one for each."""
    [axes], section = sheet.axes, sheet.section
    found = _on_axes(sheet, sheet.results.series(section.x, column, section.series), places)
    found = {label: points for label, points in found.items() if points}
    curves = {tuple((point.x, (*point.values, *point.invalid)[0]) for point in points) for points in found.values()}
    together, numbers = len(curves) == 1, sheet.numbers(found)
    for place, (label, points) in enumerate(list(found.items())[: 1 if together else None]):
        at, width = (places, GROUP_WIDTH) if places is None or together else beside(places, place, len(found))
        number = None if together else numbers[label]
        draw_companion(axes, points, label=None, number=number, dashes=dashes, x_of=at, width=width)
    axes.plot([], [], dashes, color="black", linewidth=1.0, label=word)


def _draw_saturations(sheet: Sheet, column: str) -> None:
    """Draw the saturation of each series, in the mean of its trials where it depends on the seed, or that of all."""
    [axes], section = sheet.axes, sheet.section
    found = {
        label: [value for point in points for value in (*point.values, *point.invalid)]
        for label, points in sheet.results.series(section.x, column, section.series).items()
    }
    means = {label: sum(each) / len(each) for label, each in found.items() if each}
    if section.x_scale == "log":
        means = {label: mean for label, mean in means.items() if mean > 0}
    together, numbers = len(set(means.values())) == 1, sheet.numbers(found)
    for place, (label, mean) in enumerate(list(means.items())[: 1 if together else None]):
        draw_saturation(
            axes, [mean], label=None if place else "saturation", number=None if together else numbers[label]
        )


def _places(series: Series, is_bars: bool) -> dict[Any, float] | None:
    """Return positions of x values that are words, and of bars: 0, 1, 2, ...; None if all are numbers."""
    values = list(dict.fromkeys(point.x for points in series.values() for point in points))
    if not is_bars and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return None
    return {value: float(index) for index, value in enumerate(values)}


# ---- Kind course: what further tables of trials tell from step to step ----


Row = Mapping[str, Any]
Key = tuple[Any, bool, str | None]
"""Of a line: value of the series, whether it is dashed, the trial that it is of if it is of one alone."""


@dataclass
class Course:
    """Line of a figure: x and y of the repetitions at each step."""

    row: Row
    """Row of a trial of the line."""
    steps: dict[Any, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def xs(self) -> list[float]:
        """Means over repetitions, in the order of steps."""
        return [sum(x for x, _ in found) / len(found) for _, found in sorted(self.steps.items())]

    @property
    def ys(self) -> list[Interval]:
        """Means of y with their intervals, in the order of steps."""
        return [confidence_interval([y for _, y in found]) for _, found in sorted(self.steps.items())]


def courses(results: StudyResults, section: CourseSection, series: str | None) -> dict[Key, Course]:
    """Return the lines in the order of the study; of first repetitions one for each trial. Rows without y are left
    out.
    """
    found: dict[Key, Course] = {}
    for trial in results.trials:
        if section.repetitions == "first" and trial.repetition > 0:
            continue
        for row, x, y in course_of(trial, section):
            dashed = any(row[column] == value for column, value in section.dashed.items())
            alone = trial.digest if section.repetitions == "first" else None
            key = (row[series] if series is not None else None, dashed, alone)
            found.setdefault(key, Course(row)).steps[row[section.step]].append((x, y))
    return found


def course_of(trial: TrialRecord, section: CourseSection) -> Iterable[tuple[Row, float, float]]:
    """The rows of one trial in order, with their x and y."""
    rows = sorted(trial.table(section.table), key=lambda row: row[section.step])
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
    every = courses(sheet.results, course, section.series)
    if not every:
        raise NothingToDraw
    found = {key: line for key, line in every.items() if _is_shown(line.row, section.where)}
    rows = [line.row for line in found.values()]
    numbers = sheet.numbers(value for value, *_ in every)
    metric = sheet.metrics.get(section.y)
    possible = (None, None) if metric is None else metric.possible
    least, most = (None if limit is None else course.y_times * limit for limit in possible)
    for (value, dashed, _), line in found.items():
        xs, ys = _line_on_axes(sheet, line)
        draw_line(
            axes,
            xs,
            ys,
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
    x, y = (
        path_words(column) if times == 1 else column_words(column)
        for column, times in ((course.x or course.step, course.x_times), (course.y, course.y_times))
    )
    label_axes(axes, section, x, section.y_label or y)
    return sheet.results.heading_of_first if course.repetitions == "first" else None


def _is_shown(row: Row, where: Mapping[str, Any]) -> bool:
    return all(row[column] in (value if isinstance(value, list) else [value]) for column, value in where.items())


def _line_on_axes(sheet: Sheet, line: Course) -> tuple[list[float], list[Interval]]:
    """Return x and y of a line's steps without those that a log axis has no place for."""
    section = sheet.section
    shown = [
        (x, y)
        for x, y in zip(line.xs, line.ys, strict=True)
        if (section.x_scale != "log" or sheet.has_place("x", x))
        and (section.y_scale != "log" or sheet.has_place("y", y.estimate))
    ]
    return [x for x, _ in shown], [y for _, y in shown]


def _filled_in(label: str, row: Row, rows: Sequence[Row]) -> str:
    """Columns in braces are replaced by what the row has there, as far as it tells it from all others."""

    def words(found: re.Match[str]) -> str:
        values = [row[found[1]], *(each[found[1]] for each in rows)]
        return short_names(values)[0]

    return re.sub(r"\{(.+?)\}", words, label)


# ---- Kind distribution: which share of all values is at most so large ----


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
    """Return the distribution of all repetitions by value of the series, in the order of the study.

    Values of all else that is swept are together. Trials that failed or are invalid are left out.

    Raises:
        NothingToDraw: there is no value, or no such column of numbers.
    """
    good = [trial for trial in results.trials if trial.is_good]
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
    names, numbers = name_series(section, found), sheet.numbers(found)
    for label, each in found.items():
        number = numbers[label]
        colour, marker = series_style(number)
        # A log axis shows the staircase from its first value above 0, at the height that it has there.
        is_shown = [section.x_scale != "log" or sheet.has_place("x", float(value)) for value in each.values]
        first = is_shown.index(True) if any(is_shown) else len(is_shown)
        axes.plot(
            [*each.values[first : first + 1], *each.values[first:]],
            [*([0.0, *each.shares][first : first + 1] if any(is_shown) else []), *each.shares[first:]],
            "--" if number >= len(COLOURS) else "-",
            drawstyle="steps-post",
            color=colour,
            label=None if label is None else names[label],
        )
        if section.x_scale != "log" or each.quantile(0.5) > 0:
            axes.plot([each.quantile(0.5)], [0.5], marker, color=colour)
    axes.plot([], [], "o", color="grey", label="median")
    axes.set_xscale(section.x_scale)
    metric = None if section.table is not None else sheet.metrics.get(section.x)
    name, _, unit = path_words(section.x).partition(" (")
    name, unit = (name, unit.removesuffix(")")) if metric is None else (metric.meaning, metric.unit)
    if metric is not None and section.normalised:
        x = metric_label(metric, True)
    else:
        unit = set_scaled_axis(axes.xaxis, [float(each.values[-1]) for each in found.values()], unit)
        x = f"{name} ({unit})" if unit else name
    label_axes(axes, section, x, section.y_label or f"CDF of {section.weight or section.table or 'trials'}")
    return sheet.results.heading_of_all


def quantile_rows(results: StudyResults, section: FigureSection) -> list[dict[str, Any]]:
    """Return the figure as rows: by series, the value that each of SHARES does not exceed.

    Raises:
        NothingToDraw: as of distributions.
    """
    return [
        {**({} if section.series is None else {section.series: label}), "share": share, section.shown: value}
        for label, each in distributions(results, section).items()
        for share, value in zip(SHARES, map(each.quantile, SHARES), strict=True)
    ]


# ---- Kind links: what every link carried ----


LINKS_TABLE = "links"


def link_loads(rows: Sequence[Mapping[str, object]], topology: Topology) -> dict[str, list[int]]:
    """Bytes of both directions of every link, the most first, by its class: "host", or tiers such as "leaf-spine".

    rows: of the table links of a trial, whose phases are summed; what carried nothing is not in them."""
    carried: dict[tuple[object, object], int] = defaultdict(int)
    for row in rows:
        carried[row["from"], row["to"]] += int(str(row["bytes"]))
    found: dict[str, list[int]] = {}
    for link in topology.links:
        ends = link.a.node, link.b.node
        found.setdefault(min(link_classes(topology, link)), []).extend(carried[way] for way in (ends, ends[::-1]))
    return {name: sorted(each, reverse=True) for name, each in found.items()}


def _trials(results: StudyResults, section: FigureSection) -> list[TrialRecord]:
    """Return one trial for each value of the series, of those with traffic."""
    found = {
        repr(trial.row[section.series]) if section.series else "": trial
        for trial in reversed(results.trials)
        if trial.table(LINKS_TABLE)
    }
    return list(reversed(found.values()))


@figure_kind("links", columns=lambda results, section: len(_trials(results, section)))
def draw_links(sheet: Sheet) -> None:
    """A panel for each value of the series: bytes of every direction of a link, the busiest first, by class."""
    trials = _trials(sheet.results, sheet.section)
    if not trials:
        raise NothingToDraw
    system = find_system(str(sheet.results.resolved["system"]))
    configurations = sheet.results.configurations()
    series = sheet.section.series
    names = short_names([trial.row[series] if series else "" for trial in trials])
    for axes, trial, name in zip(sheet.axes, trials, names, strict=True):
        configuration = system.configuration.model_validate(configurations[trial.digest])
        by_class = link_loads(trial.table(LINKS_TABLE), configuration.topology.build(Scale()))
        for number, (link_class, values) in enumerate(by_class.items()):
            colour, marker = series_style(number)
            places = range(1, len(values) + 1)
            axes.plot(
                places, [value / 1e3 for value in values], marker + "-", color=colour, markersize=3, label=link_class
            )
        axes.set_title(name)
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], HEADROOM * axes.dataLim.y1))
        axes.set_xlabel("directions of links, the busiest first")
        axes.set_ylabel("carried (kB)")
        axes.xaxis.get_major_locator().set_params(integer=True)
    sheet.axes[0].legend()


# ---- All figures of a study ----

NAMED = 3
"""Values left out of a figure that its line names."""


def draw_figures(
    results: StudyResults,
    figures: Mapping[str, FigureSection],
    metrics: Mapping[str, Metric],
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Draw every figure that has trials into the run's folder, and return the files.

    Args:
        say: takes a line for each other figure, and for values that a log axis has no place for.
    """
    written: list[Path] = []
    for name, section in figures.items():
        try:
            if section.y and not any(results.series(section.x, section.y, section.series).values()):
                raise NothingToDraw
            written += _draw(results, section, metrics, results.folder / name, say)
        except NothingToDraw as nothing:
            why = str(nothing) or "there is nothing to draw, as no trial that it shows has ended with a result"
            say(f"no figure {name}: {why}")
    return written


def kinds() -> Mapping[str, Kind]:
    """Return all kinds of figures by name; those of a system once it is loaded."""
    return KINDS


def _draw(
    results: StudyResults,
    section: FigureSection,
    metrics: Mapping[str, Metric],
    path: Path,
    say: Callable[[str], None],
) -> list[Path]:
    kind = KINDS[section.kind]
    columns, rows = (
        count if isinstance(count, int) else count(results, section) for count in (kind.columns, kind.rows)
    )
    size = section.width_in or kind.width_in, section.height_in or kind.height_in
    with figure(*size, columns, rows) as (made, axes):
        sheet = Sheet(axes, results, section, metrics)
        try:
            heading = kind.draw(sheet)
        finally:
            if sheet.left_out:
                say(f"figures.{path.name}: {_left_out_words(sheet)}")
        return save(made, path, results.heading if heading is None else heading)


def _left_out_words(sheet: Sheet) -> str:
    values = [f"{axis} = {value:g}" for axis, value in sorted(sheet.left_out)]
    named = values if len(values) <= NAMED else [*values[:NAMED], f"{len(values) - NAMED} more"]
    verbs = ("has", "is") if len(values) == 1 else ("have", "are")
    return f"{', '.join(named)} {verbs[0]} no place on a log axis and {verbs[1]} left out"


# ---- The same as a table: the file that documents quote (docs/data) ----


DIGITS = 6


def write_figure_data(study: Study, results: StudyResults) -> Path:
    """data/NAME.csv in the run's folder: a row for each place of the sweep on each clock, in the order of the study.

    Columns: the swept paths, clock, how many repetitions count (as in figures, not those that failed or were
    invalid), and of the study's metrics and those that its figures name the mean, with half of the 95 % interval in
    NAME_half where repetitions differ. Virtual clock: the same to the last byte each time.
    Of what a figure FIGURE of kind distribution shows data/NAME_FIGURE.csv has the quantiles.
    """
    names = _columns(study)
    places: dict[tuple[str, str], list[TrialRecord]] = {}
    for trial in (*results.trials, *results.other_clock):
        places.setdefault((repr(trial.coordinates), str(trial.row["clock"])), []).append(trial)
    rows = [_row(trials, study.head.sweep.paths, names) for trials in places.values()]
    folder = results.folder / "data"
    folder.mkdir(exist_ok=True)
    for name, section in study.head.figures.items():
        if section.kind == "distribution":
            with suppress(NothingToDraw):
                shown = [row for panel in panels_of(section) for row in quantile_rows(results, panel)]
                _write(shown, folder / f"{study.name}_{name}.csv")
    return _write(rows, folder / f"{study.name}.csv")


def _write(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    replace_file(path, lambda target: write_csv(rows, target))
    return path


def _columns(study: Study) -> list[str]:
    """Return the metrics of the study; all where it names none."""
    found = list(study.head.metrics or study.system.metrics)
    for section in (panel for each in study.head.figures.values() for panel in panels_of(each)):
        suffix = "_normalised" if section.normalised else ""
        found += [] if section.table else [section.shown]
        found += [f"{name}{suffix}" for name in (section.bound, section.expected) if name is not None]
        found += [section.saturation] if section.saturation is not None else []
    return list(dict.fromkeys(found))


def _row(trials: Sequence[TrialRecord], paths: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    good = [trial for trial in trials if trial.is_good]
    row = {path: trials[0].coordinates[path] for path in paths}
    row |= {"clock": trials[0].row["clock"], "repetitions": len(good)}
    for name in names:
        values = [float(trial.row[name]) for trial in good if isinstance(trial.row.get(name), int | float)]
        if values:
            interval = confidence_interval(values)
            row[name] = _rounded(interval.estimate)
            if interval.has_width:
                row[f"{name}_half"] = _rounded(interval.high - interval.estimate)
        else:
            row[name] = None
    return row


def _rounded(value: float) -> float | int:
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded
