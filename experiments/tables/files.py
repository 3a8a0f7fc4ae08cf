"""Write raw rows as CSV and Parquet.

Files are replaced as a whole, so that a reader never sees half of one."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def write_tables(rows: Sequence[Row], path: Path) -> None:
    """Write `path` with .csv and .parquet.

    Columns are those of all rows, in order of first appearance; what a row lacks is empty. Lists and mappings become
    JSON.
    """
    names, flat = _flattened(rows)
    replace_file(path.with_suffix(".csv"), lambda target: write_csv(rows, target))
    replace_file(path.with_suffix(".parquet"), lambda target: _write_parquet(names, flat, target))


def _flattened(rows: Sequence[Row]) -> tuple[list[str], list[Row]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [{name: flat_value(row.get(name)) for name in names} for row in rows]


def flat_value(value: Any) -> Any:
    """Return a value as a cell of a table: lists and mappings become JSON."""
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, tuple, dict)) else value


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file by what `write` makes under another name.

    Where it fails (no space left), the former content stays, and nothing else.
    """
    scratch = path.with_name(f".{path.name}")
    try:
        write(scratch)
        if scratch.exists():
            scratch.replace(path)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(path)
        raise


def write_csv(rows: Sequence[Row], target: Path) -> None:
    """Write the CSV file of `write_tables`."""
    names, flat = _flattened(rows)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=names)
        writer.writeheader()
        writer.writerows(flat)


def _write_parquet(names: Sequence[str], rows: Sequence[Row], target: Path) -> None:
    """Write a Parquet file if pyarrow is installed, which takes more space than all else that a run needs."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    columns = {name: _one_type([row[name] for row in rows]) for name in names}
    parquet.write_table(pyarrow.table(columns), target)


def _one_type(values: list[Any]) -> list[Any]:
    """Convert values to one type, as a Parquet column has one and a swept path may have several."""
    types = {type(value) for value in values if value is not None}
    if types <= {int, float} or len(types) <= 1:
        return [float(value) if types == {int, float} and value is not None else value for value in values]
    return [None if value is None else str(value) for value in values]
