"""Faults as what a study varies: they are lists, and stand in figures and tables in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.study.command import run_study_file
from gradbed.experiments.study.running.executors import RunOptions

STUDY = """
name: faulty
system: workload
clock: virtual
program: {path: own.p4}
topology: {kind: "leaf-spine:2,2,1"}
traffic: {packets: 20}
sweep:
  product:
    faults: [[], [{fault: link-down, link: [l1, s1], at_ms: 1}]]
    traffic.load: [0.2, 0.4]
compare: faults
metrics: [loss]
figures:
  along: {x: faults, y: loss}
  beside: {x: traffic.load, y: loss, series: faults}
"""
IN_WORDS = "at_ms 1 link-down l1, s1"


def test_faults_are_axis_series_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Path(__file__).parents[2] / "workload" / "programs" / "own.p4"
    (tmp_path / "own.p4").write_text(own.read_text())
    (tmp_path / "study.yaml").write_text(STUDY)
    assert run_study_file(tmp_path / "study.yaml", RunOptions(tmp_path)) == 0
    written = tmp_path / "faulty" / "latest"
    for name in ("along", "beside"):
        assert all(part in (written / f"{name}.svg").read_text() for part in ("none", "link-down"))
    printed = capsys.readouterr().out
    assert "'fault'" not in printed and printed.count(IN_WORDS) >= 2
