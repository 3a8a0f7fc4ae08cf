"""Studies on a real network, as a person runs them."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 120

STUDY = """
name: small
system: aggregation
topology:
  kind: star:4
  link: {rate_mbps: 50, loss: 0.02, duplicate: 0.02}
workload: {workers: 3, rounds: 3, values: 7040}
sweep:
  product:
    switches.placement: [server-tor, none]
metrics: [throughput_bps, bound_share]
figures:
  throughput: {x: switches.placement, y: throughput_bps, bound: bound_bps, normalised: true}
"""


def command(tmp_path: Path, *options: str) -> list[str]:
    (tmp_path / "small.yaml").write_text(STUDY)
    file = str(tmp_path / "small.yaml")
    return [sys.executable, "-m", "cli", "run", file, "--scale", "0.2", "--output", str(tmp_path), *options]


def points(folder: Path) -> dict[str, dict[str, object]]:
    """What is stored of every point, by digest."""
    return {path.stem: json.loads(path.read_text()) for path in (folder / "points").glob("*.json")}


def newest_run(output: Path) -> Path:
    return max(path for path in (output / "small").iterdir() if path.name[0].isdigit())


def test_a_killed_sweep_goes_on_and_decides_the_same_again(tmp_path: Path) -> None:
    whole = subprocess.run(
        command(tmp_path), cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert whole.returncode == 0, whole.stdout + whole.stderr
    first = (tmp_path / "small" / "latest").resolve()
    for suffix in ("png", "svg", "pdf"):
        assert (first / f"throughput.{suffix}").stat().st_size > 1000
    with (first / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["verdict"] for row in rows} <= {"valid", "unknown", "doubtful", "invalid"}
    for row in rows:
        # Nominal, as all that the tables hold.
        assert (float(row["link_rate_bps"]), float(row["scale_factor"])) == (50e6, 0.2)
        # Bytes that lost and repeated packets cost are not in the throughput, so the bound holds with them too.
        assert 0 < float(row["throughput_bps"]) <= float(row["bound_bps"])
        assert float(row["fidelity_late_p99_us"]) > 0
        assert float(row["fidelity_agent_busy"]) > 0

    with (first / "links.csv").open() as file:
        carried = list(csv.DictReader(file))
    for row in rows:
        own = [int(link["bytes"]) for link in carried if link["digest"] == row["digest"]]
        assert float(row["byte_hops"]) == pytest.approx(sum(own) / 3)

    killed = subprocess.Popen(command(tmp_path), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + TIMEOUT_S
    while (second := newest_run(tmp_path)) == first or len(points(second)) < 1:
        assert killed.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(points(second)) == 1
    assert (tmp_path / "small" / "latest").resolve() == first
    went_on = subprocess.run(
        command(tmp_path, "--resume"), cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert went_on.returncode == 0, went_on.stdout + went_on.stderr
    assert "1 of 2 points are done" in went_on.stderr
    assert (tmp_path / "small" / "latest").resolve() == second

    again = points(second)
    assert again.keys() == points(first).keys()
    for digest, point in points(first).items():
        assert again[digest]["decisions"] == point["decisions"]
        assert point["failures"] == []
