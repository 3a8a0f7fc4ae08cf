"""A study over all pairs of compiler and switch: training ends in the same weights on each."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.switch.p4lang.p4c import find_p4c
from tests.command import rows, run_well
from tests.p4.switch_under_test import needs_bmv2

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.root,
    # Of the same packets each pair makes the same: tests/p4/test_differential.py; training on BMv2: test_main_job.py.
    pytest.mark.nightly,
    pytest.mark.skipif(find_p4c() is None, reason="p4c is not installed"),
    needs_bmv2,
]

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
    run_well("run", tmp_path / "pairs.yaml", "--output", tmp_path, "--scale", 0.2, timeout_s=300)
    found = rows(tmp_path / "pairs" / "latest" / "trials.csv")
    pairs = {(row["program.compiler"], row["program.model"]) for row in found}
    assert pairs == {(compiler, model) for compiler in ("gradbed", "p4c") for model in ("gradbed", "bmv2")}
    # Each run has held its sums to a single process; whatever packets were repeated, all have learned the same.
    assert len({row["accuracy"] for row in found}) == 1, found
    assert all(float(row["accuracy"]) > 0.1 for row in found), "guessing is right in one of ten"
