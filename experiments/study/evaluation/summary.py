"""The tables at the end of a study: what its trials found, and the values of one swept path beside each other, such
as two programs under the same traffic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.experiments.plotting.series import cut
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults, worst
from gradbed.experiments.study.definition import Study, StudyHead
from gradbed.experiments.tables.console import FittedTable
from gradbed.experiments.tables.files import write_tables
from gradbed.experiments.tables.metric import (
    CONFIDENCE,
    Metric,
    Prefix,
    column_words,
    confidence_interval,
    engineering,
    path_words,
    prefix_of,
    short_names,
)

# ---- All trials ----


CUT = "*"


def summary_table(study: Study, results: StudyResults) -> FittedTable:
    """Return a row for each place in the sweep: metrics as mean and half of the interval, and the worst verdict.

    A column has one unit. Trials that are invalid or failed are left out of the means, as in figures, and marked.
    """
    names = study.head.metrics or study.system.report.main_metrics or list(study.system.metrics)
    names = [name for name in names if any(trial.row[name] is not None for trial in results.trials)]
    places: dict[str, list[TrialRecord]] = {}
    for trial in results.trials:
        places.setdefault(repr(trial.coordinates), []).append(trial)
    swept = {path: [trials[0].row[path] for trials in places.values()] for path in study.head.sweep.paths}
    coordinates = list(zip(*map(short_names, swept.values()), strict=True)) or [()] * len(places)
    metrics = {name: study.system.metrics[name] for name in names}
    shown = [[trial for trial in trials if trial.is_good] or trials for trials in places.values()]
    scales = {
        name: prefix_of([_mean(trials, name) for trials in shown], metric.unit) for name, metric in metrics.items()
    }
    rows = []
    for trials, coordinate in zip(places.values(), coordinates, strict=True):
        good = [trial for trial in trials if trial.is_good]
        cells = list(coordinate)
        cells += [_cell(metrics[name], good or trials, name, bool(good), scales[name]) for name in names]
        left_out = f", {len(trials) - len(good)} of {len(trials)} left out" if len(good) < len(trials) else ""
        rows.append([*cells, worst(p.row["verdict"] for p in good or trials) + left_out])
    table = FittedTable(
        title=study.head.title or study.name, caption=_caption(rows), labels=max(1, len(study.head.sweep.paths))
    )
    titles = [*map(path_words, study.head.sweep.paths), *map(column_words, names), "verdict"]
    for number, title in enumerate(titles):
        is_metric = len(study.head.sweep.paths) <= number < len(titles) - 1
        table.add_column(title, justify="right" if is_metric else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _caption(rows: list[list[str]]) -> str | None:
    shown = [cell for row in rows for cell in row[:-1]]
    said = [
        *([f"mean ± half of the {100 * CONFIDENCE:.0f} % interval"] if any("±" in cell for cell in shown) else []),
        *([f"{CUT} an end of it is impossible"] if any(cell.rstrip(")").endswith(CUT) for cell in shown) else []),
        *(["(...) no run was valid"] if any(cell.startswith("(") for cell in shown) else []),
    ]
    return "; ".join(said) or None


def _values(trials: Sequence[TrialRecord], name: str) -> list[float]:
    return [float(trial.row[name]) for trial in trials if trial.row[name] is not None]


def _mean(trials: Sequence[TrialRecord], name: str) -> float | None:
    values = _values(trials, name)
    return sum(values) / len(values) if values else None


def _cell(metric: Metric, trials: Sequence[TrialRecord], name: str, good: bool, scale: Prefix) -> str:
    values = _values(trials, name)
    if not values:
        return ""
    interval = confidence_interval(values)
    error = interval.high - interval.estimate if interval.has_width else None
    shown = engineering(interval.estimate, metric.unit, 3, error, scale)
    if error is not None and cut(interval, metric.possible) != (interval.low, interval.high):
        shown += CUT
    return shown if good else f"({shown})"


# ---- Values of one path beside each other ----


TABLE = "comparison"
SAME = "="


@dataclass(frozen=True)
class Difference:
    """Difference of a metric between the first value and another one, by repetitions of the same seeds."""

    first: float
    """Mean at the first value."""
    other: float
    """Mean at the other value."""
    difference: float
    """Mean of the differences."""
    half: float | None
    """Half of the difference's confidence interval; None with one repetition."""

    @property
    def relative(self) -> float | None:
        """Difference relative to the first mean; None if that is zero."""
        return self.difference / abs(self.first) if self.first else None


@dataclass(frozen=True)
class Comparison:
    """Comparison of the values of a swept path at one place of the sweep."""

    place: Mapping[str, Any]
    """Values of all else that is swept."""
    values: Sequence[Any]
    """Values of the compared path, the first one first."""
    means: Mapping[str, Sequence[float | None]]
    """Mean at each value, by metric; None where it has none."""
    differences: Mapping[str, Sequence[Difference | None]]
    """Difference of each further value to the first one, by metric."""


def compared(head: StudyHead, metrics: Sequence[str], results: StudyResults) -> list[Comparison]:
    """Return a comparison for each place of all that is swept but `head.compare` and what advances with it.

    Trials that failed are left out where a value has others, as in the table at the end of a study.
    """
    assert head.compare is not None
    in_step = set(head.sweep.zip) if head.compare in head.sweep.zip else {head.compare}
    places: dict[str, dict[str, list[TrialRecord]]] = {}
    for trial in results.trials:
        place = {path: value for path, value in trial.coordinates.items() if path not in in_step}
        by_value = places.setdefault(repr(place), {})
        by_value.setdefault(repr(trial.coordinates[head.compare]), []).append(trial)
    found = []
    for by_value in places.values():
        coordinates = [trials[0].coordinates for trials in by_value.values()]
        if len(coordinates) > 1:
            place = {path: value for path, value in coordinates[0].items() if path not in in_step}
            values = [each[head.compare] for each in coordinates]
            found.append(Comparison(place, values, *_of_metrics(list(by_value.values()), metrics)))
    return found


def _of_metrics(
    groups: Sequence[Sequence[TrialRecord]], metrics: Sequence[str]
) -> tuple[dict[str, list[float | None]], dict[str, list[Difference | None]]]:
    """Means and differences of the metrics that some value has. groups: the trials of each value."""
    means: dict[str, list[float | None]] = {}
    differences: dict[str, list[Difference | None]] = {}
    for name in metrics:
        found = [_numbers(trials, name) for trials in groups]
        if any(found):
            means[name] = [sum(each.values()) / len(each) if each else None for each in found]
            differences[name] = [_difference(found[0], other) for other in found[1:]]
    return means, differences


def _numbers(trials: Sequence[TrialRecord], name: str) -> dict[int, float]:
    chosen = [trial for trial in trials if trial.is_good] or trials
    values = {trial.repetition: trial.row[name] for trial in chosen}
    return {number: float(value) for number, value in values.items() if isinstance(value, (int, float))}


def _difference(first: Mapping[int, float], other: Mapping[int, float]) -> Difference | None:
    both = sorted(first.keys() & other.keys())
    if not both:
        return None
    interval = confidence_interval([other[number] - first[number] for number in both])
    half = None if math.isnan(interval.high) else interval.high - interval.estimate
    mean = [sum(values[number] for number in both) / len(both) for values in (first, other)]
    return Difference(mean[0], mean[1], interval.estimate, half)


# ---- For people ----


def comparison_tables(
    head: StudyHead, metrics: Mapping[str, Metric], results: StudyResults, *, in_words: bool = False
) -> list[FittedTable]:
    """A table for each place, and the same as the file comparison.csv in the run's folder. in_words: rows are called
    by what metrics mean."""
    chosen = {name: metrics[name] for name in head.metrics or metrics}
    found = compared(head, list(chosen), results)
    if found:
        write_tables(_rows(head, chosen, found), results.folder / TABLE)
    return [_table(head, chosen, each, in_words) for each in found]


def _table(head: StudyHead, metrics: Mapping[str, Metric], comparison: Comparison, in_words: bool) -> FittedTable:
    assert head.compare is not None
    where = ", ".join(f"{path_words(path)} {value}" for path, value in comparison.place.items())
    names = short_names(comparison.values)
    table = FittedTable(title=f"{path_words(head.compare)} compared{': ' if where else ''}{where}")
    table.add_column("" if in_words else "metric", no_wrap=not in_words)
    table.add_column(names[0], justify="right", no_wrap=True)
    for name in names[1:]:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column(f"{name} - {names[0]}" if len(names) > 2 else "difference", justify="right", no_wrap=True)
    for name, differences in comparison.differences.items():
        unit = metrics[name].unit
        scale = prefix_of(comparison.means[name], unit)
        means = [None if mean is None else engineering(mean, unit, scale=scale) for mean in comparison.means[name]]
        cells = [means[0] or ""]
        for mean, difference in zip(means[1:], differences, strict=True):
            cells += [mean or "", "" if difference is None else _words(difference, unit, scale)]
        table.add_row(metrics[name].meaning if in_words else name, *cells)
    return table


def _words(difference: Difference, unit: str, scale: Prefix) -> str:
    if difference.difference == 0 and not difference.half:
        return SAME
    sign = "+" if difference.difference > 0 else ""
    shown = f"{sign}{engineering(difference.difference, unit, 3, difference.half, scale)}"
    return shown if difference.relative is None else f"{shown} ({difference.relative:+.1%})"


def _rows(head: StudyHead, metrics: Mapping[str, Metric], comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    rows = []
    for comparison in comparisons:
        for name, differences in comparison.differences.items():
            for value, found in zip(comparison.values[1:], differences, strict=True):
                if found is not None:
                    rows.append(
                        {
                            **comparison.place,
                            "compared": head.compare,
                            "first": comparison.values[0],
                            "other": value,
                            "metric": name,
                            "unit": metrics[name].unit,
                            "mean_of_first": found.first,
                            "mean_of_other": found.other,
                            "difference": found.difference,
                            "difference_half_interval": found.half,
                            "relative_difference": found.relative,
                        }
                    )
    return rows
