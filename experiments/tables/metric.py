"""What a trial yields: its metrics, and a table of them for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gradbed.experiments.tables.console import FittedTable
from gradbed.experiments.tables.words import engineering

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Metric:
    """A number that each trial of a system yields.

    scales: how it follows the link rate. "rate" (bit/s) and "time" (s) are nominal in every table; each is also given
    relative to the link rate in a column NAME_normalised: a rate divided by it, a time multiplied by it (bits that
    fit into that time). None: not at all. possible: the least and the most that the number can be, where intervals
    end; None: no such limit. on_bmv2: False for what is None where BMv2 runs the switches.
    """

    unit: str
    meaning: str
    scales: Literal["rate", "time"] | None = None
    possible: tuple[float | None, float | None] = (0.0, None)
    on_bmv2: bool = True

    def is_untold(self, model: str) -> bool:
        """Whether it has no value because of what runs the switches."""
        return model == "bmv2" and not self.on_bmv2


def metric_table(title: str, metrics: Mapping[str, Metric], row: Mapping[str, Any], model: str) -> FittedTable:
    """row: of the trials table; what has no value in it is left out. model: what ran the switches."""
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
