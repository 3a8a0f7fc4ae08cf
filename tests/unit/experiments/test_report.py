"""The table at the end of a run of one trial."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from gradbed.experiments.systems.aggregation import report
from tests.unit.experiments.outcomes import BOTH, outcome


def cells(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The table's cells by the words in front of them."""
    shown = io.StringIO()
    Console(file=shown, width=160).print(report.table(rows))
    lines = [line.split("\u2502")[1:-1] for line in shown.getvalue().splitlines() if line.startswith("\u2502")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}


def test_the_table_shows_measured_and_ideal_ratio() -> None:
    assert cells(BOTH)["gradients into the server"] == [
        "160,000.0 B", "20,000.0 B", "0.1250", "0.1250",
    ]  # fmt: skip


def test_the_ratio_is_measured_not_assumed() -> None:
    worse = [BOTH[0], outcome("in-network", 96, 0.01)]
    assert cells(worse)["gradient packets into it"] == ["160.0", "24.0", "0.1500", "0.1250"]


def test_round_times_and_accuracy() -> None:
    table = cells(BOTH)
    assert table["round time, median"][:2] == ["92 ms", "11.5 ms"]
    assert table["test accuracy"][:2] == ["80.00 %", "80.00 %"]
    assert "round time, lower bound" not in table
    bounded = [{**row, "least_round_time_s": least} for row, least in zip(BOTH, (0.08, 0.01), strict=True)]
    assert cells(bounded)["round time, lower bound"][:2] == ["80 ms", "10 ms"]
    assert "test accuracy" not in cells([{**row, "accuracy": None} for row in BOTH])


def test_what_kept_switches_from_summing_is_shown_where_it_occurred() -> None:
    assert not any("met another" in name for name in cells(BOTH))
    troubled = cells(
        [BOTH[0], outcome("in-network", 80, 0.01, slots_collision=7, slots_contention=3, direct_copies=2)]
    )
    assert troubled["met another fragment of the job in the slot"][:2] == ["0", "7"]
    assert troubled["met another job in the slot"][:2] == ["0", "3"]
    assert troubled["gradients sent alone on request"][:2] == ["0", "2"]
    assert "found all slots held" not in troubled
    assert "would have left int32" not in troubled


def test_every_job_is_compared_with_itself_alone() -> None:
    second = [outcome("parameter server", 320, 0.02, job=2), outcome("in-network", 80, 0.01, job=2)]
    assert report.by_job([BOTH[0], second[0], BOTH[1], second[1]]) == [BOTH, second]
    assert cells(second)["gradient packets into it"][2] == "0.2500"


def test_baselines_have_columns_but_no_server() -> None:
    ring = outcome("ring", 0, 0.005, resends=3, byte_hops=4000)
    with_links = [{**row, "byte_hops": hops} for row, hops in zip(BOTH, (8000, 2000), strict=True)]
    table = cells([*with_links, ring])
    assert table["gradients into the server"][:4] == ["160,000.0 B", "20,000.0 B", "-", "0.1250"]
    assert table["bytes on all links"][:4] == ["2,000 B", "500 B", "1,000 B", "0.2500"]
    assert table["gradient packets resent"][2] == "3"


def test_a_script_without_a_registered_model_is_told() -> None:
    assert len(report.script_lines([], [])) == 1
    row = outcome("in-network", 80, 0.01)
    lines = report.script_lines([row], [{"clipped": 3}, {"clipped": 4}])
    assert "4 gradients of 700 values summed over 8 workers" in lines[0]
    assert lines[1].startswith("20000 B of gradients into the server's link")
    assert lines[2].startswith("7 values")
    assert len(report.script_lines([row], [{"clipped": 0}])) == 2
