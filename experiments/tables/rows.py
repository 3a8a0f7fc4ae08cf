"""Tables for people, of rows of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradbed.experiments.tables.fitted import FittedTable

Columns = Sequence[tuple[str, Callable[[Any], object]]]
"""Titles, and what a row has there; None is an empty cell."""


def rows_table(title: str, columns: Columns, rows: Iterable[Any], *, words: Sequence[str] = ()) -> FittedTable:
    """words: the columns that are no numbers, and so begin on the left, and are folded where there is no room."""
    table = FittedTable(title=title)
    for name, _ in columns:
        table.add_column(name, justify="left" if name in words else "right")
    for row in rows:
        cells = [cell(row) for _, cell in columns]
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    return table
