"""The table at the end of a study."""

from __future__ import annotations

from rich.table import Table

from experiments.intervals import CONFIDENCE, confidence_interval
from experiments.study.model import Study
from experiments.study.results import StudyResults, worst
from experiments.study.run_files import DonePoint
from experiments.units import engineering


def summary_table(study: Study, results: StudyResults) -> Table:
    """A row for each place in the sweep: metrics as mean and half of the interval, and the worst verdict. Points that
    are invalid or failed are left out of the means, as in figures, and marked."""
    names = study.head.metrics or list(study.system.metrics)
    repeated = study.head.repetitions > 1
    caption = f"mean ± half of the {100 * CONFIDENCE:.0f} % confidence interval" if repeated else None
    table = Table(title=study.head.title or study.name, caption=caption)
    for path in study.head.sweep.paths:
        table.add_column(path.rsplit(".", 1)[-1], no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    places: dict[str, list[DonePoint]] = {}
    for point in results.points:
        places.setdefault(repr(point.coordinates), []).append(point)
    for points in places.values():
        good = [point for point in points if point.stored.is_good]
        cells = [str(points[0].row[path]) for path in study.head.sweep.paths]
        cells += [_cell(study.system.metrics[name].unit, good or points, name, bool(good)) for name in names]
        left_out = f", {len(points) - len(good)} of {len(points)} left out" if len(good) < len(points) else ""
        table.add_row(*cells, worst(p.row["verdict"] for p in good or points) + left_out)
    return table


def _cell(unit: str, points: list[DonePoint], name: str, good: bool) -> str:
    values = [float(point.row[name]) for point in points if point.row[name] is not None]
    if not values:
        return ""
    interval = confidence_interval(values)
    error = None if interval.repetitions == 1 else interval.high - interval.estimate
    shown = engineering(interval.estimate, unit, 3, error)
    return shown if good else f"({shown})"
