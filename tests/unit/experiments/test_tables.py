"""Rows as CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.tables.files import write_tables
from gradbed.experiments.tables.metric import Metric, metric_table
from tests.csv_files import read_csv

ROWS = [
    {"name": "greedy", "value": 1, "share": 0.5, "good": True, "nothing": None, "mixed": "all", "list": [1, 2]},
    {"name": None, "value": None, "share": 2, "good": None, "nothing": None, "mixed": 4, "later": 9},
]


def test_columns_of_all_rows(tmp_path: Path) -> None:
    write_tables(ROWS, tmp_path / "rows")
    first, second = read_csv(tmp_path / "rows.csv")
    assert list(first) == ["name", "value", "share", "good", "nothing", "mixed", "list", "later"]
    assert (first["list"], first["later"], second["name"], second["later"]) == ("[1, 2]", "", "", "9")
    assert not list(tmp_path.glob(".*"))


def test_parquet_keeps_types_and_what_is_missing(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_tables(ROWS, tmp_path / "rows")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert table["share"] == [0.5, 2.0]
    assert table["value"] == [1, None]
    assert table["mixed"] == ["all", "4"]
    assert table["good"][0] is True
    assert table["nothing"] == [None, None]


@pytest.mark.parametrize(("model", "shown"), [("bmv2", ["not on BMv2", "0"]), ("gradbed", ["0"])])
def test_a_metric_without_value_is_left_out_and_what_bmv2_does_not_tell_says_so(model: str, shown: list[str]) -> None:
    metrics = {
        "queue": Metric("", "packets", on_bmv2=False),
        "rest": Metric("", "other"),
        "zero": Metric("", ""),
    }
    table = metric_table("t", metrics, {"queue": None, "rest": None, "zero": 0}, model)
    assert list(table.columns[1].cells) == shown
