"""What a study's figures show as one small table: the file that documents quote (docs/data)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradbed.experiments.plotting.style import NothingToDraw
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.definition.model import Study
from gradbed.experiments.study.evaluation.distributions import quantile_rows
from gradbed.experiments.study.evaluation.kinds import panels_of
from gradbed.experiments.tables.intervals import confidence_interval
from gradbed.experiments.tables.tables import replace_file, write_csv

DIGITS = 6


def write_figure_data(study: Study, results: StudyResults) -> Path:
    """data/NAME.csv in the run's folder: a row for each place of the sweep on each clock, in the order of the study.

    Columns: the swept paths, clock, how many repetitions count (as in figures, not those that failed or were
    invalid), and of the study's metrics and those that its figures name the mean, with half of the 95 % interval in
    NAME_half where repetitions differ. Virtual clock: the same to the last byte each time.
    Of what a figure FIGURE of kind distribution shows data/NAME_FIGURE.csv has the quantiles.
    """
    names = _columns(study)
    places: dict[tuple[str, str], list[DonePoint]] = {}
    for point in (*results.points, *results.other_clock):
        places.setdefault((repr(point.coordinates), str(point.row["clock"])), []).append(point)
    rows = [_row(points, study.head.sweep.paths, names) for points in places.values()]
    folder = results.folder / "data"
    folder.mkdir(exist_ok=True)
    for figure, section in study.head.figures.items():
        if section.kind == "distribution":
            with suppress(NothingToDraw):
                shown = [row for panel in panels_of(section) for row in quantile_rows(results, panel)]
                _write(shown, folder / f"{study.name}_{figure}.csv")
    return _write(rows, folder / f"{study.name}.csv")


def _write(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    replace_file(path, lambda target: write_csv(rows, target))
    return path


def _columns(study: Study) -> list[str]:
    """All metrics where a study names none."""
    found = list(study.head.metrics or study.system.metrics)
    for section in (panel for figure in study.head.figures.values() for panel in panels_of(figure)):
        suffix = "_normalised" if section.normalised else ""
        found += [] if section.table else [section.shown]
        found += [f"{name}{suffix}" for name in (section.bound, section.expected) if name is not None]
        found += [section.saturation] if section.saturation is not None else []
    return list(dict.fromkeys(found))


def _row(points: Sequence[DonePoint], paths: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    good = [point for point in points if point.stored.is_good]
    row = {path: points[0].coordinates[path] for path in paths}
    row |= {"clock": points[0].row["clock"], "repetitions": len(good)}
    for name in names:
        values = [float(point.row[name]) for point in good if isinstance(point.row.get(name), int | float)]
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
