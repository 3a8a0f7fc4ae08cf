"""Consoles on which runs, studies and benchmarks print, and tables that fit the terminal.

No cell is cut, and no word broken, as long as a single column fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradbed.common.errors import folded

FILE_COLUMNS = 200
"""Width of tables in files, which can be wider than a terminal; rich would cut them off at 80."""


class _Sentences(Console):
    """Console that folds text at words on a terminal only, and never inside a path."""

    def print(self, *objects: Any, **how: Any) -> None:
        width = self.width if self.is_terminal else None
        super().print(*(folded(each, width) if isinstance(each, str) else each for each in objects), **how)


def make_console(stderr: bool = False) -> Console:
    """Return a console on standard output, or standard error."""
    console = _Sentences(highlight=False, soft_wrap=True, stderr=stderr)
    if not console.is_terminal:
        console.width = FILE_COLUMNS
    return console


# ---- Tables that fit ----


BORDERS = 1
"""Columns between two cells, besides their padding, and at each end."""


@dataclass(frozen=True)
class _Column:
    """A column of a fitted table."""

    title: str
    cells: tuple[str, ...]
    justify: Any
    folds: bool
    """Whether its cells may be broken between words; its title always may."""

    @property
    def natural(self) -> int:
        """Width where nothing is folded."""
        return max(map(cell_len, self._lines(self.title, *self.cells)), default=0)

    @property
    def least(self) -> int:
        """Width below which a word or a number would be broken."""
        whole = () if self.folds else self._lines(*self.cells)
        words = [*self.title.split(), *(word for cell in self.cells if self.folds for word in cell.split())]
        return max(map(cell_len, (*whole, *words)), default=0)

    @staticmethod
    def _lines(*texts: str) -> list[str]:
        return [line for text in texts for line in text.splitlines()]


class FittedTable(Table):
    """A rich table that fits the terminal.

    Where it is too wide, titles are folded, and cells of left-aligned columns that are not `no_wrap`; otherwise rows
    become columns; otherwise the columns go into several tables below each other, each with the label columns again.
    """

    def __init__(self, *headers: str, labels: int = 1, **settings: Any) -> None:
        """Make an empty table.

        Args:
            labels: number of columns on the left that identify a row.
        """
        super().__init__(*headers, **settings)
        self.labels = labels

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        columns = [
            _Column(str(column.header), tuple(map(str, column.cells)), column.justify, _folds(column))
            for column in self.columns
        ]
        room = options.max_width
        if not self._fits(columns, room) and len(columns) > self.labels and self.row_count:
            turned = _turned(columns)
            columns = turned if self._fits(turned, room) else columns
        parts = list(self._split(columns, room))
        plain = options.update(no_wrap=False, overflow="fold")
        for number, part in enumerate(parts):
            table = self._laid_out(part, room)
            width = console.measure(table, options=plain).maximum
            if self.title and not number:
                yield from console.render(_beside(self.title, "table.title", width), plain)
            yield from console.render(table, plain)
        if self.caption:
            yield from console.render(_beside(self.caption, "table.caption", width), plain)

    def _frame(self, columns: Sequence[_Column]) -> int:
        """Return the width of padding and borders."""
        _, right, _, left = self.padding
        return len(columns) * (left + right + BORDERS) + BORDERS

    def _fits(self, columns: Sequence[_Column], room: int) -> bool:
        return sum(column.least for column in columns) + self._frame(columns) <= room

    def _split(self, columns: Sequence[_Column], room: int) -> Iterator[Sequence[_Column]]:
        """Yield as few tables as hold all columns; a single column may be too wide."""
        labels, rest = list(columns[: self.labels]), list(columns[self.labels :])
        part: list[_Column] = []
        for column in rest:
            if part and not self._fits([*labels, *part, column], room):
                yield [*labels, *part]
                part = []
            part.append(column)
        yield [*labels, *part]

    def _laid_out(self, columns: Sequence[_Column], room: int) -> Table:
        widths = [column.natural for column in columns]
        most = room - self._frame(columns)
        while sum(widths) > most:
            slack, number = max((widths[number] - column.least, number) for number, column in enumerate(columns))
            if slack <= 0:
                break
            widths[number] -= 1
        table = Table(padding=self.padding)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(Text(column.title), justify=column.justify, width=width, overflow="fold")
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*map(Text, row))
        return table


def _beside(words: Any, style: str, width: int) -> Text:
    """Return a title or caption, centred over the table, or left-aligned where it is longer."""
    text = Text(str(words), style=style)
    text.pad_left(max(0, (width - text.cell_len) // 2))
    return text


def _folds(column: Any) -> bool:
    return column.justify == "left" and not column.no_wrap


def _turned(columns: Iterable[_Column]) -> list[_Column]:
    """Return rows as columns: the first column has the titles, and its cells are the new titles."""
    first, *rest = columns
    names = _Column(first.title, tuple(column.title for column in rest), "left", True)
    rows = zip(*(column.cells for column in rest), strict=True)
    return [names, *(_Column(title, row, "right", False) for title, row in zip(first.cells, rows, strict=False))]


# ---- Tables of rows of any kind ----


Columns = Sequence[tuple[str, Callable[[Any], object]]]
"""Title of each column, and the function for its cells; None is an empty cell."""


def rows_table(title: str, columns: Columns, rows: Iterable[Any], *, words: Sequence[str] = ()) -> FittedTable:
    """Return a table of rows of any kind.

    Args:
        words: columns that are no numbers: they are left-aligned, and are folded where there is no room.
    """
    table = FittedTable(title=title)
    for name, _ in columns:
        table.add_column(name, justify="left" if name in words else "right")
    for row in rows:
        cells = [cell(row) for _, cell in columns]
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    return table
