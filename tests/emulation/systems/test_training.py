"""Training in Mininet: ranks are processes whose NICs send by interfaces of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulation.real_trial import real_trial

pytestmark = [pytest.mark.thorough, pytest.mark.root]

COLLECTIVE = "--topology star:4 --rate-mbps 100 --size-bytes 200000 --contents --scale 1"


# Without loss: the tests below. How losses are made good is the NIC's affair: tests/unit/virtual/transport/.
@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", marks=pytest.mark.nightly),
        "--loss 0.03",
        pytest.param("--loss 0.03 --recovery selective-repeat", marks=pytest.mark.nightly),
    ],
)
def test_an_all_reduce_sums_exactly(tmp_path: Path, more: str) -> None:
    trial = real_trial("training", f"{COLLECTIVE} {more}", tmp_path)
    # Halving and doubling: each of four ranks sends a half and a quarter twice.
    assert (int(trial["messages"]), int(trial["message_bytes"])) == (16, 4 * 2 * 150_000)
    assert (int(trial["retransmissions"]) > 0) == ("loss" in more)
    # No rank has all in less time than its link needs for that.
    assert float(trial["collective_time_s"]) > 2 * 150_000 * 8 / 100e6


# On the virtual clock: tests/unit/training/test_in_network.py; switches that sum on the real one: test_main_job.py.
@pytest.mark.nightly
def test_switches_sum(tmp_path: Path) -> None:
    trial = real_trial("training", f"{COLLECTIVE} --ranks 3 --in-network aggregation", tmp_path)
    assert int(trial["messages"]) == 0 < int(trial["packets"])


def test_computations_stretch_with_the_network(tmp_path: Path) -> None:
    """At a tenth of the rates everything takes ten times as long, what ranks compute included."""
    trace = tmp_path / "trace.txt"
    trace.write_text("DATA\n1\nlayer -1 5000 NONE 0 0 NONE 0 5000 ALLREDUCE 100000 10\n")
    trial = real_trial(
        "training", f"--topology star:4 --rate-mbps 100 --scale 0.1 --ranks 2 --trace {trace}", tmp_path
    )
    assert float(trial["compute_time_s"]) == pytest.approx(10e-3, rel=1e-3)
    assert float(trial["iteration_time_s"]) > 10e-3
