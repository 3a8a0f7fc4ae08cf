"""Tables for people as HTML has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class HtmlTable:
    """numbers: the columns whose cells are aligned on the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    caption: str = ""


def html_table(table: Table) -> HtmlTable:
    """The same as on a terminal."""
    columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
    return HtmlTable(
        title=_plain(table.title),
        columns=[_plain(column.header) for column in table.columns],
        rows=list(zip(*columns, strict=True)),
        numbers=frozenset(n for n, column in enumerate(table.columns) if column.justify == "right"),
        caption=_plain(table.caption),
    )


def plain_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()
) -> HtmlTable:
    """Of values; None is an empty cell. numbers: names of columns."""
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    return HtmlTable(title, columns, shown, frozenset(n for n, name in enumerate(columns) if name in numbers))


def _plain(shown: Any) -> str:
    if shown is None:
        return ""
    return shown.plain if isinstance(shown, Text) else Text.from_markup(str(shown)).plain
