"""Gloo's all-reduce among agents, over Linux routing and as a baseline of the experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.hosts.learning.reference import synthetic_reference
from gradbed.hosts.learning.settings import SyntheticSettings
from tests.command import ROOT, rows, run_well
from tests.emulation.agent_hosts import LauncherProcess, StarOfHosts
from tests.emulation.network.test_agents import assert_counts_like_the_kernel
from tests.emulation.systems.test_ring import run

pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = [pytest.mark.thorough, pytest.mark.root]


@pytest.mark.parametrize(
    ("magnitude", "repeated"), [pytest.param(1 << 29, 0, marks=pytest.mark.nightly), ((1 << 31) - 1, 2)]
)
def test_sums_are_exact_where_they_leave_int32_too(magnitude: int, repeated: int) -> None:
    workload = {"kind": "synthetic", "values": 3000, "rounds": 2, "magnitude": magnitude}
    with StarOfHosts(4) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for host in star.hosts:
            host.run("ethtool", "-K", "eth0", "tx", "off")
        job, final, rounds = run(launcher, star, exchange="gloo", workload=workload)
        for index in range(3):
            assert_counts_like_the_kernel(star, index + 1, final[f"worker {index}"])
            # Its gradient in each of two rounds, at least.
            assert final[f"worker {index}"]["gradient_sent"]["bytes"] > 2 * 4 * 3000
    assert isinstance(job.workload, SyntheticSettings)
    digests = list(synthetic_reference(job.workload, 3, job.lanes))
    assert len(rounds) == 3 * 2
    assert all(event["sums_sha256"] == digests[event["round"]] for event in rounds)
    assert [statistics["repeated_rounds"] for statistics in final.values()] == [repeated] * 3


# The whole command: test_main_job.py; ring and Gloo among processes: test_ring.py, and above.
@pytest.mark.nightly
def test_baselines_of_the_experiment(tmp_path: Path) -> None:
    """The whole command, with both baselines; it succeeds only if all weights are the reference's."""
    options = "--topology leaf-spine:2,2,2 --workers 3 --rounds 4 --hidden-units 0 --baselines ring,gloo"
    run_well("run", "aggregation", "--output", tmp_path, *options.split())
    latest = tmp_path / "aggregation" / "latest"
    phases = {row["phase"]: row for row in rows(latest / "summary.csv")}
    assert list(phases) == ["in-network", "ring", "gloo"]
    gradient_bytes = 4 * 650 * 4
    for row in phases.values():
        # Each worker's gradient crosses its own access link, at least.
        assert int(row["byte_hops"]) > 3 * gradient_bytes
    assert (latest / "figure.png").exists()


STUDY = """
name: gloo
title: Gloo
system: aggregation
topology:
  kind: leaf-spine:2,2,2
  link: {rate_mbps: 100, delay_us: 50, queue_packets: 1000}
switches: {placement: none}
workload: {rounds: 2, values: 2000, workers: 3, exchange: gloo}
repetitions: 1
metrics: [round_time_s, byte_hops]
"""


@pytest.mark.nightly
def test_a_study(tmp_path: Path) -> None:
    """What the kernel counted in the hosts is what links carried, to the byte."""
    (tmp_path / "gloo.yaml").write_text(STUDY)
    run_well("run", "gloo.yaml", cwd=tmp_path, PYTHONPATH=ROOT)
    hosts = rows(tmp_path / "results" / "gloo" / "latest" / "hosts.csv")
    assert [row["agrees"] for row in hosts] == ["True"] * 3
    assert all(int(row["host_sent_bytes"]) > 2 * 4 * 2000 for row in hosts)
