"""A study over all pairs of compiler and switch: training ends in the same weights on each."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from switch.p4lang.p4c import find_p4c
from tests.p4.switch_under_test import needs_bmv2

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(find_p4c() is None, reason="p4c is not installed"),
    needs_bmv2,
]

ROOT = Path(__file__).resolve().parents[3]
STUDY = """
name: pairs
system: aggregation
topology:
  kind: star:4
  link: {rate_mbps: 20, delay_us: 0}
workload: {kind: training, workers: 3, rounds: 2, hidden_units: 4}
sweep:
  product:
    program.compiler: [gradbed, p4c]
    program.model: [gradbed, bmv2]
metrics: [accuracy, server_packets]
"""


def test_results_are_equal_on_all_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(STUDY)
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "cli",
            "run",
            str(tmp_path / "pairs.yaml"),
            "--output",
            str(tmp_path),
            "--scale",
            "0.2",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (tmp_path / "pairs" / "latest" / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    pairs = {(row["program.compiler"], row["program.model"]) for row in rows}
    assert pairs == {(compiler, model) for compiler in ("gradbed", "p4c") for model in ("gradbed", "bmv2")}
    # Each run has held its sums to a single process; whatever packets were repeated, all have learned the same.
    assert len({row["accuracy"] for row in rows}) == 1, rows
    assert all(float(row["accuracy"]) > 0.1 for row in rows), "guessing is right in one of ten"
