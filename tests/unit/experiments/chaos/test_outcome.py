"""All systems' cells as one table, and that docs/faults.md shows the one that the command left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gradbed.experiments.scale import Scale
from gradbed.experiments.study.chaos import (
    NOTHING,
    Cell,
    Matrix,
    faults_of,
    outcome_rows,
    packet_table,
    read_outcome,
    run_chaos,
    verdict_table,
    with_chaos,
    write_outcome,
)
from gradbed.experiments.study.running.executors import RunOptions
from tests.unit.documented_figures import ROOT
from tests.unit.experiments.chaos.test_matrix import whole_matrix

CELLS = {
    "one": [
        Cell(NOTHING, 1, "right", 1.0, 0.5),
        Cell("rain", 1, "right", 2.25, 1.0),
        Cell("rain", 2, "clear error", None, None, "it rains"),
    ],
    "two": [Cell(NOTHING, 1, "right", 1.0, 0.5), Cell("snow", 1, "failed", 9.0, 123.0, "wrong sum")],
}


def test_a_line_for_each_fault_and_a_column_for_each_system(tmp_path: Path) -> None:
    folder = write_outcome(tmp_path, CELLS)
    rows = read_outcome(folder / "outcome.csv")
    assert rows == outcome_rows(CELLS)
    verdicts = verdict_table(rows)
    assert verdicts.splitlines() == [
        "| fault | one | two |",
        "|---|---|---|",
        "| nothing | 1 right | 1 right |",
        "| rain | 1 right, 1 clear | – |",
        "| snow | – | 1 **failed** |",
    ]
    packets = packet_table(rows)
    assert packets.splitlines()[2:] == ["| rain | 2.25, 1 s | – |", "| snow | – | 9.00, 120 s |"]
    assert (folder / "outcome.md").read_text(encoding="utf-8") == f"{verdicts}\n\n{packets}\n"
    assert (folder / "outcome.png").stat().st_size > 0


def test_the_documents_show_what_the_command_left() -> None:
    rows = read_outcome(ROOT / "docs/data/chaos.csv")
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    assert verdict_table(rows) in page, "docs/faults.md: the table is not that of docs/data/chaos.csv"
    assert packet_table(rows) in page, "docs/faults.md: packets and times are not those of docs/data/chaos.csv"
    cells = [row["right"] + row["clear error"] + row["failed"] for row in rows]
    right, clear, failed = (sum(row[word] for row in rows) for word in ("right", "clear error", "failed"))
    said = f"{sum(cells)} cells: {right} right, {clear} clear errors, {failed} failed"
    assert said in " ".join(page.split()), f"docs/faults.md does not say: {said}"


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize(
    "system", ["aggregation", "ndn", "shuffle", "compression", "interconnect", "workload", "training"]
)
def test_the_documents_are_of_the_matrix_as_it_is_now(system: str) -> None:
    rows = [row for row in read_outcome(ROOT / "docs/data/chaos.csv") if row["system"] == system]
    study, chaos = whole_matrix(system)
    topology = study.trials[0].configuration.topology.build(Scale())
    assert [row["fault"] for row in rows] == [NOTHING, *faults_of(chaos, topology, 0.0)]
    assert {row["right"] + row["clear error"] + row["failed"] for row in rows} == {study.head.repetitions}
    # A clear error only where the study names the line.
    assert {row["fault"] for row in rows if row["clear error"]} <= set(chaos.errors)
    assert system in with_chaos()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("system", "fault"),
    # Slow: another cell of another system; the whole matrix is a command (docs/faults.md).
    [("aggregation", "an agent is killed"), pytest.param("shuffle", "loss 20 %", marks=pytest.mark.nightly)],
)
def test_cells_end_as_the_documents_say(system: str, fault: str, tmp_path: Path) -> None:
    """The first of the ten. Its numbers are those of a run on the virtual clock, so they are the same everywhere."""
    found: dict[str, Sequence[Cell]] = {}
    assert run_chaos(system, RunOptions(tmp_path, jobs=1), Matrix(quick=True, only=[fault]), found) == 0
    nothing, cell = found[system]
    assert nothing.verdict == "right"
    (row,) = (
        row for row in read_outcome(ROOT / "docs/data/chaos.csv") if (row["system"], row["fault"]) == (system, fault)
    )
    assert row[cell.verdict] > 0
    assert cell.packets is None or cell.packets <= row["packets"] + 0.005
