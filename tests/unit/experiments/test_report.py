"""The table at the end of a run."""

import io

import pytest
from rich.console import Console

from experiments import report
from tests.unit.experiments.outcomes import BOTH, outcome


def text(outcomes: list) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(report.table(outcomes))
    return console.file.getvalue()


def test_the_table_shows_measured_and_ideal_ratio() -> None:
    line = next(line for line in text(BOTH).splitlines() if "gradients into the server's link" in line)
    assert "160,000.0 B" in line
    assert "20,000.0 B" in line
    assert line.count("0.1250") == 2


def test_the_ratio_is_measured_not_assumed() -> None:
    worse = [BOTH[0], outcome("in-network", 96, 0.01)]
    assert report.ratio(worse) == pytest.approx(0.15)
    line = next(line for line in text(worse).splitlines() if "gradients into the server's link" in line)
    assert "0.1500" in line
    assert "0.1250" in line


def test_round_times_and_accuracy() -> None:
    lines = text(BOTH).splitlines()
    assert any("92.0 ms" in line and "11.5 ms" in line for line in lines)
    assert any("80.00 %" in line for line in lines)
