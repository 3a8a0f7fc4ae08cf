"""Studies on a real network, as a person runs them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import ROOT, rows, run_well

pytestmark = [pytest.mark.thorough, pytest.mark.root]

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
    return ["run", str(tmp_path / "small.yaml"), "--scale", "0.2", "--output", str(tmp_path), *options]


def trials(folder: Path) -> dict[str, dict[str, object]]:
    """What is stored of every trial, by digest."""
    return {path.stem: json.loads(path.read_text()) for path in (folder / "trials").glob("*.json")}


def newest_run(output: Path) -> Path:
    return max(path for path in (output / "small").iterdir() if path.name[0].isdigit())


# Killed and gone on with on the virtual clock: tests/unit/experiments/study/test_runner.py; rows of trials on the
# real one: tests/emulation/systems/.
@pytest.mark.nightly
def test_a_killed_sweep_goes_on_and_decides_the_same_again(tmp_path: Path) -> None:
    run_well(*command(tmp_path), timeout_s=TIMEOUT_S)
    first = (tmp_path / "small" / "latest").resolve()
    for suffix in ("png", "svg", "pdf"):
        assert (first / f"throughput.{suffix}").stat().st_size > 1000
    found = rows(first / "trials.csv")
    assert {row["verdict"] for row in found} <= {"valid", "unknown", "degraded", "invalid"}
    for row in found:
        # Nominal, as all that the tables hold.
        assert (float(row["link_rate_bps"]), float(row["scale_factor"])) == (50e6, 0.2)
        # Bytes that lost and repeated packets cost are not in the throughput, so the bound holds with them too.
        assert 0 < float(row["throughput_bps"]) <= float(row["bound_bps"])
        assert float(row["validity_late_p99_us"]) > 0
        assert float(row["validity_agent_busy"]) > 0
    carried = rows(first / "links.csv")
    for row in found:
        own = [int(link["bytes"]) for link in carried if link["digest"] == row["digest"]]
        assert float(row["byte_hops"]) == pytest.approx(sum(own) / 3)

    whole = [sys.executable, "-m", "gradbed", *command(tmp_path)]
    killed = subprocess.Popen(whole, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + TIMEOUT_S
    while (second := newest_run(tmp_path)) == first or len(trials(second)) < 1:
        assert killed.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(trials(second)) == 1
    assert (tmp_path / "small" / "latest").resolve() == first
    went_on = run_well(*command(tmp_path, "--resume"), timeout_s=TIMEOUT_S)
    assert "1 of 2 trials are done" in went_on.stderr
    assert (tmp_path / "small" / "latest").resolve() == second

    again = trials(second)
    assert again.keys() == trials(first).keys()
    for digest, trial in trials(first).items():
        assert again[digest]["decisions"] == trial["decisions"]
        assert trial["failures"] == []
