"""The last words of a run say what was expected, or that nothing was, and how much arrived."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.command import run_system
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.systems.workload.report import NOTHING_EXPECTED, closing
from tests.unit.workload.runs import ROUTES, configuration

DROPPED = "tables: {}\n"


def said(folder: Path, capsys: pytest.CaptureFixture[str], entries: str = ROUTES, **sections: Any) -> str:
    """The last line."""
    values = configuration(folder, entries, **sections).model_dump()
    assert run_system("workload", values, 1, RunOptions(folder)) == 0
    return " ".join(capsys.readouterr().out.rsplit("verdict: simulated\n", 1)[1].split())


def test_nothing_was_expected_and_everything_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = said(tmp_path, capsys, DROPPED)
    assert line == (
        "The run checked no expectations about the program (--expect). "
        "Hosts, links and switches agree on every packet: none of 300 arrived."
    )


def test_what_was_expected_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = said(tmp_path, capsys, expect={"loss": 0, "counter:s1:arrived[2]": "10..400"})
    assert line == (
        "Expectations met: loss == 0, counter:s1:arrived[2] 10..400. "
        "Hosts, links and switches agree on every packet: 300 of 300 arrived."
    )


def lost(*reasons: str) -> TrialRecord:
    """A trial of connections that were lost for these reasons; empty: it was not."""
    row = {"sent_packets": None, "verdict": "valid"}
    flows: list[Mapping[str, Any]] = [{"sender": "h1", "receiver": "h2", "error": reason} for reason in reasons]
    return TrialRecord("trial", 1, row, {"flows": flows}, {}, [])


def test_why_connections_were_lost_is_told_once_for_each_reason(tmp_path: Path) -> None:
    resolved = {"trials": [{"digest": "trial", "configuration": {"expect": {}}}]}
    trials = (lost("Connection reset by peer", "", "No route to host"), lost("No route to host"))
    assert closing(StudyResults(tmp_path, resolved, trials)).splitlines() == [
        f"{NOTHING_EXPECTED} Packets from the kernels of hosts were not compared with counts of links.",
        "1 connection was lost: Connection reset by peer",
        "2 connections were lost: No route to host",
    ]
