"""Tables at any width: nothing is cut, no word and no number broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gradbed.experiments.tables.console import FittedTable

WIDTHS = (200, 120, 100, 80, 60, 40)
CELLS = [
    ["least-loaded", "0.3323", "4.98 ± 0.12 ms", "5.72 ± 0.01 ms", "-0.168 (-45.0%)", "[1, 2]", "model, 1 left out"],
    ["fixed-plane", "0.5", "1 s", "2 s", "=", "[3]", "simulated"],
]
TITLES = ["policy", "accepted load", "latency", "p99", "largest link load", "place", "verdict"]


def printed(table: FittedTable, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, soft_wrap=True)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def table(rows: int = 2, labels: int = 1) -> FittedTable:
    made = FittedTable(title="How long packets take, and how many are lost, by policy", labels=labels)
    for title in TITLES:
        made.add_column(title, justify="left" if title in ("policy", "verdict") else "right")
    for number in range(rows):
        made.add_row(*CELLS[number % 2])
    return made


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [1, 2, 12])
def test_no_line_is_too_long_and_every_cell_is_whole(width: int, rows: int) -> None:
    shown = printed(table(rows), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for cell in (*CELLS[0][:-1], *TITLES):
        for word in [cell] if cell in CELLS[0] else cell.split():
            assert word in shown, word
    assert shown.count("4.98 ± 0.12 ms") == (rows + 1) // 2


def test_where_there_is_room_it_is_as_it_was_made() -> None:
    lines = printed(table(), 200).splitlines()
    assert lines[0].strip().startswith("How long") and all(title in lines[2] for title in TITLES)
    assert len(lines) == 7


def test_few_rows_become_columns_and_many_are_split_with_what_they_are_called() -> None:
    turned = printed(table(2), 70).splitlines()
    assert "least-loaded" in turned[2] and "fixed-plane" in turned[2]
    split = printed(table(12), 70)
    assert split.count("┃ policy") == split.count("┏━") > 1
    assert split.count("fixed-plane") == 6 * split.count("┏━")


def test_labels_of_two_columns_stay_together() -> None:
    split = printed(table(12, labels=2), 70)
    assert split.count("accepted") == split.count("┏━") > 1


def test_a_single_word_that_is_too_long_is_folded_and_not_cut() -> None:
    made = FittedTable("path")
    made.add_row("/a" * 40)
    shown = printed(made, 40)
    assert "…" not in shown and shown.count("/a") == 40
