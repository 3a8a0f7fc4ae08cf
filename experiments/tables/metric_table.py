"""The metrics of one point, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from experiments.tables.units import engineering

if TYPE_CHECKING:
    from experiments.system import Metric


def metric_table(title: str, metrics: Mapping[str, Metric], row: Mapping[str, Any]) -> Table:
    """row: of the points table."""
    table = Table(title=title)
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, metric in metrics.items():
        value = row[name]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        table.add_row(name, engineering(value, metric.unit) if is_number else str(value), metric.meaning)
    return table
