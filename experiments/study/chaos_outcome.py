"""All systems' fault matrices together: the table and the figure that `gradbed chaos` leaves in OUTPUT/chaos, and
docs/faults.md shows.

The table's source is outcome.csv, a row for each fault of each system.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.experiments.plotting.style import COLOURS, MARKERS, figure, save
from gradbed.experiments.records.run_folder import RunFolder
from gradbed.experiments.study.chaos import NOTHING, VERDICTS, Cell, summary
from gradbed.experiments.tables.tables import replace_file, write_csv

NAME = "outcome"
ABSENT = "–"
"""The system has no such fault, or no cell of it came to an end."""

Row = Mapping[str, Any]


def write_outcome(output: Path, cells: Mapping[str, Sequence[Cell]]) -> Path:
    """outcome.csv, .md, .png, .svg and .pdf of the cells of each system, in a new folder; that folder."""
    folder = RunFolder(output, "chaos")
    rows = outcome_rows(cells)
    replace_file(folder.path / f"{NAME}.csv", lambda target: write_csv(rows, target))
    tables = f"{verdict_table(rows)}\n\n{packet_table(rows)}\n"
    replace_file(folder.path / f"{NAME}.md", lambda target: target.write_text(tables, encoding="utf-8"))
    draw(rows, folder.path / NAME)
    folder.finish()
    folder.close()
    return folder.path


def outcome_rows(cells: Mapping[str, Sequence[Cell]]) -> list[dict[str, Any]]:
    """system, fault, cells of each verdict, packets (the most of a link, in times of a run without
    faults), time_s (median)."""
    return [{"system": system, **row} for system, own in cells.items() for row in summary(own)]


def read_outcome(path: Path) -> list[dict[str, Any]]:
    """The rows of an outcome.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                **row,
                **{word: int(row[word]) for word in VERDICTS},
                **{word: float(row[word]) if row[word] else None for word in ("packets", "time_s")},
            }
            for row in csv.DictReader(file)
        ]


def verdict_table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each fault, a column for each system."""
    return _table(rows, _verdicts)


def packet_table(rows: Sequence[Row]) -> str:
    """The same of packets and times of cells that came to an end."""
    return _table([row for row in rows if row["fault"] != NOTHING], _effort)


def _table(rows: Sequence[Row], words: Any) -> str:
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lines = [f"| fault | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for fault in dict.fromkeys(row["fault"] for row in rows):
        found = {row["system"]: words(row) for row in rows if row["fault"] == fault}
        lines.append(f"| {fault} | {' | '.join(found.get(system, ABSENT) for system in systems)} |")
    return "\n".join(lines)


def _verdicts(row: Row) -> str:
    short = {"clear error": "clear", "failed": "**failed**"}
    return ", ".join(f"{row[verdict]} {short.get(verdict, verdict)}" for verdict in VERDICTS if row[verdict])


def _effort(row: Row) -> str:
    if row["packets"] is None or row["time_s"] is None:
        return ABSENT
    time_s = float(f"{row['time_s']:.2g}")
    return f"{row['packets']:.2f}, {time_s:g} s"


def draw(rows: Sequence[Row], path: Path) -> list[Path]:
    """Packets of the busiest link, the most of each fault's cells, by fault and system."""
    shown = [row for row in rows if row["fault"] != NOTHING and row["packets"] is not None]
    faults = list(dict.fromkeys(row["fault"] for row in rows if row["fault"] != NOTHING))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    with figure(6.4, 4.8) as (made, (axes,)):
        for place, system in enumerate(systems):
            own = [row for row in shown if row["system"] == system]
            heights = [faults.index(row["fault"]) + 0.1 * (place - (len(systems) - 1) / 2) for row in own]
            look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
            axes.plot([row["packets"] for row in own], heights, linestyle="none", label=system, **look)
        axes.set_yticks(range(len(faults)), faults)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
        axes.set_xlabel("packets of the busiest link, in times of a run without faults")
        axes.legend()
        return save(made, path, "Faults: the most packets over a link")
