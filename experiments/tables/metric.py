"""Metrics of a trial, and a table of them for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gradbed.experiments.tables.console import FittedTable
from gradbed.experiments.tables.words import engineering

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Metric:
    """A number that each trial of a system yields."""

    unit: str
    """Unit of the value: "bit/s", "s", "us", "B", or "" for a plain number."""
    meaning: str
    """Short description for tables, axes and reports."""
    scales: Literal["rate", "time"] | None = None
    """How the value follows the link rate; None: not at all.

    "rate" (bit/s) and "time" (s) are nominal in every table. Each is also given relative to the link rate in a column
    NAME_normalised: a rate divided by it, a time multiplied by it (bits that fit into that time).
    """
    possible: tuple[float | None, float | None] = (0.0, None)
    """Smallest and largest possible value, where intervals are cut; None: no such limit."""
    on_bmv2: bool = True
    """False for a metric that is None where BMv2 runs the switches."""

    def is_untold(self, model: str) -> bool:
        """Return whether it has no value because of what runs the switches."""
        return model == "bmv2" and not self.on_bmv2


def metric_table(title: str, metrics: Mapping[str, Metric], row: Mapping[str, Any], model: str) -> FittedTable:
    """Return a table of a trial's metrics, without those that have no value.

    Args:
        row: of the points table.
        model: what ran the switches.
    """
    table = FittedTable(title=title)
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, metric in metrics.items():
        value: Any = "not on BMv2" if row[name] is None and metric.is_untold(model) else row[name]
        if value is None:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        table.add_row(name, engineering(value, metric.unit) if is_number else str(value), metric.meaning)
    return table
