"""A shuffle in Mininet: the same agents, packets and checks as on the virtual clock."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

ROOT = Path(__file__).resolve().parents[2]


def test_a_shuffle_over_bcube(tmp_path: Path) -> None:
    """The run fails where a link did not carry what the schedule says, or a sample is not the original one."""
    options = (
        "--clock real --topology bcube:2,1 --samples 24 --storage 0.5 --scheduler coded-largest --timeout-us 200000"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "cli", "run", "shuffle", *options.split(), "--output", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (tmp_path / "shuffle" / "latest" / "points.csv").open() as file:
        (point,) = csv.DictReader(file)
    assert point["clock"] == "real"
    assert float(point["counted_hops"]) == float(point["hops"]) > 0
