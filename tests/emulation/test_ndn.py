"""NDN on the real clock: the routers, the controller and the peers are processes of their own."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


def test_one_point_on_the_real_clock(tmp_path: Path) -> None:
    options = ["--clock", "real", "--workload", "synthetic", "--topology", "leaf-spine:2,1,2", "--peers", "4"]
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "cli",
            "run",
            "ndn",
            *options,
            "--rounds",
            "2",
            "--scale",
            "0.1",
            "--output",
            str(tmp_path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (tmp_path / "ndn" / "latest" / "points.csv").open() as file:
        (point,) = csv.DictReader(file)
    assert point["clock"] == "real"
    assert float(point["expected_transmissions"]) == 4 * 6
