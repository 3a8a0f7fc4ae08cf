"""The table at the end of a study."""

from __future__ import annotations

from gradbed.experiments.plotting.series import cut
from gradbed.experiments.records.results import StudyResults, worst
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.definition.model import Study
from gradbed.experiments.tables.fitted import FittedTable
from gradbed.experiments.tables.intervals import CONFIDENCE, confidence_interval
from gradbed.experiments.tables.metric import Metric
from gradbed.experiments.tables.units import engineering
from gradbed.experiments.tables.words import column_words, path_words, short_names

CUT = "*"


def summary_table(study: Study, results: StudyResults) -> FittedTable:
    """A row for each place in the sweep: metrics as mean and half of the interval, and the worst verdict. Points that
    are invalid or failed are left out of the means, as in figures, and marked."""
    names = study.head.metrics or study.system.main_metrics or list(study.system.metrics)
    names = [name for name in names if any(point.row[name] is not None for point in results.points)]
    places: dict[str, list[DonePoint]] = {}
    for point in results.points:
        places.setdefault(repr(point.coordinates), []).append(point)
    swept = {path: [points[0].row[path] for points in places.values()] for path in study.head.sweep.paths}
    coordinates = list(zip(*map(short_names, swept.values()), strict=True)) or [()] * len(places)
    rows = []
    for points, coordinate in zip(places.values(), coordinates, strict=True):
        good = [point for point in points if point.stored.is_good]
        cells = list(coordinate)
        cells += [_cell(study.system.metrics[name], good or points, name, bool(good)) for name in names]
        left_out = f", {len(points) - len(good)} of {len(points)} left out" if len(good) < len(points) else ""
        rows.append([*cells, worst(p.row["verdict"] for p in good or points) + left_out])
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


def _cell(metric: Metric, points: list[DonePoint], name: str, good: bool) -> str:
    values = [float(point.row[name]) for point in points if point.row[name] is not None]
    if not values:
        return ""
    interval = confidence_interval(values)
    error = interval.high - interval.estimate if interval.has_width else None
    shown = engineering(interval.estimate, metric.unit, 3, error)
    if error is not None and cut(interval, metric.possible) != (interval.low, interval.high):
        shown += CUT
    return shown if good else f"({shown})"
