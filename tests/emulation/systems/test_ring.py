"""Ring all-reduce by worker agents over Linux routing, with exact counts."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from tests.emulation.agent_hosts import LauncherProcess, StarOfHosts

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PATIENT_US = 10_000_000
"""No worker resends, however slow the machine: the counts are exact."""


def run(launcher: LauncherProcess, star: StarOfHosts, **fields: Any) -> tuple[Any, dict[str, Any], list[Any]]:
    """A job of the star's hosts but the first, without a server: its config, final statistics and rounds."""
    job = star.job(len(star.hosts) - 1, **{"exchange": "ring", **fields})
    first = len(launcher.events)
    launcher.start(star, job)
    launcher.tell("begin")
    launcher.wait_for("done", len(job.workers), first)
    launcher.tell("stop")
    launcher.wait_for("stopped", 1, first)
    events = launcher.events[first:]
    final = {event["name"]: event["statistics"] for event in events if event["event"] == "final"}
    return job, final, [event for event in events if event["event"] == "round"]


def test_two_jobs_over_linux_routing() -> None:
    """Training and synthetic gradients, whose sums leave int32: equal to the reference; frames as many as needed."""
    training = {"kind": "training", "hidden_units": 8, "rounds": 5, "batch_samples": 16}
    synthetic = {"kind": "synthetic", "values": 3000, "rounds": 3, "magnitude": (1 << 31) - 1}
    with StarOfHosts(4) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        job, final, rounds = run(launcher, star, workload=training, lanes=64, min_timeout_us=PATIENT_US)
        assert isinstance(job.workload, TrainingSettings)
        expected = {row.round: row.weights_sha256 for row in reference(job.workload, 3, 64)}
        assert len(rounds) == 3 * 5
        assert all(event["weights_sha256"] == expected[event["round"]] for event in rounds)
        assert set(final) == {"worker 0", "worker 1", "worker 2"}
        frames = 0
        for statistics in final.values():
            assert statistics["malformed"] == statistics["misdirected"] == statistics["rejected"] == 0
            assert statistics["timeout_resends"] == statistics["early_resends"] == statistics["duplicates"] == 0
            sent = statistics["gradient_sent"]
            assert sent["bytes"] == sent["frames"] * frame_bytes(64)
            frames += sent["frames"]
        # Every fragment takes 2 (n - 1) hops.
        assert frames == 5 * job.fragments_per_round * 2 * 2

        job, final, rounds = run(launcher, star, job=4, workload=synthetic, first_packet_number=(1 << 32) - 9)
        assert isinstance(job.workload, SyntheticSettings)
        digests = list(synthetic_reference(job.workload, 3, job.lanes))
        assert [event["sums_sha256"] for event in rounds] == [digests[event["round"]] for event in rounds]
        assert len(rounds) == 3 * 3
