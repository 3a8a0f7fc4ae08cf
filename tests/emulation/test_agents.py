"""Worker and server agents in network namespaces: over Linux routing, and over a switch in plain Python."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hosts.job import JobDescription
from hosts.learning.reference import reference
from hosts.protocols.gradient_format import frame_bytes
from tests.emulation.agent_hosts import ROOT, LauncherProcess, StarOfHosts

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

TRAINING = {"hidden_units": 8, "rounds": 6, "batch_samples": 16}


def assert_equals_reference(events: list[dict[str, Any]], job: JobDescription) -> None:
    """Every worker has, after every round, the reference's weights, bit for bit."""
    expected = list(reference(job.training, len(job.workers)))
    for worker in job.workers:
        rounds = [e for e in events if e["event"] == "round" and e["name"] == f"worker {worker.index}"]
        assert [r["round"] for r in rounds] == list(range(job.training.rounds))
        assert [r["weights_sha256"] for r in rounds] == [r.weights_sha256 for r in expected]
        assert [r["loss"] for r in rounds] == [r.losses[worker.index] for r in expected]
        assert all(0 < r["seconds"] <= r["total_seconds"] for r in rounds)
        if worker.index == 0:
            assert [r["accuracy"] for r in rounds] == [r.accuracy for r in expected]


def train(launcher: LauncherProcess, job: JobDescription) -> None:
    """Begin, and wait for all to be done."""
    first = len(launcher.events)
    launcher.tell("begin")
    launcher.wait_for("done", len(job.workers) + 1, first)


def stop(launcher: LauncherProcess, job: JobDescription) -> dict[str, dict[str, Any]]:
    """The agents' final statistics by name."""
    first = len(launcher.events)
    launcher.tell("stop")
    launcher.wait_for("stopped", 1, first)
    final = [event for event in launcher.events[first:] if event["event"] == "final"]
    assert len(final) == len(job.workers) + 1
    return {event["name"]: event["statistics"] for event in final}


def assert_counts_like_the_kernel(star: StarOfHosts, host: int, statistics: dict[str, Any]) -> None:
    """An agent's frames and bytes are those of its host's interface."""
    link = json.loads(star.hosts[host].run("ip", "-json", "-statistics", "link", "show", "eth0"))[0]["stats64"]
    for direction, suffix in (("tx", "sent"), ("rx", "received")):
        for unit, kernels in (("frames", "packets"), ("bytes", "bytes")):
            counted = sum(statistics[f"{kind}_{suffix}"][unit] for kind in ("gradient", "acknowledgement"))
            assert counted == link[direction][kernels], (host, direction, unit)


def unreachable_sent(star: StarOfHosts, host: int) -> int:
    """ICMP 'unreachable' messages that a host has sent."""
    names, values = [
        line.split()
        for line in star.hosts[host].run("cat", "/proc/net/snmp").splitlines()
        if line.startswith("Icmp:")
    ]
    return int(values[names.index("OutDestUnreachs")])


def test_parameter_server_alone_over_linux_routing() -> None:
    """Two jobs with one launcher. Counts agree with what every fragment needs, and nothing answers with ICMP."""
    with StarOfHosts(4) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for number, workers in ((3, 3), (4, 2)):
            first = len(launcher.events)
            # No resends, however slow the machine: the counts are exact.
            job = star.job(workers, job=number, training=TRAINING, min_timeout_us=10_000_000)
            launcher.start(star, job)
            train(launcher, job)
            statistics = stop(launcher, job)
            assert_equals_reference(launcher.events[first:], job)
            fragments = job.fragments_per_round * job.training.rounds
            each = {"frames": fragments, "bytes": fragments * frame_bytes(job.lanes)}
            everything = {"frames": workers * fragments, "bytes": workers * fragments * frame_bytes(job.lanes)}
            for index in range(workers):
                assert statistics[f"worker {index}"]["gradient_sent"] == each
                assert statistics[f"worker {index}"]["acknowledgement_received"] == each
            assert statistics["server"]["gradient_received"] == everything
            assert statistics["server"]["acknowledgement_sent"] == everything
            assert statistics["server"]["merged_singles"] == everything["frames"]
            for agent in statistics.values():
                assert agent["malformed"] == agent["misdirected"] == agent["socket_drops"] == 0
        assert [unreachable_sent(star, host) for host in range(4)] == [0] * 4


def test_sums_in_a_switch_with_loss_and_duplicates() -> None:
    """Aggregation, multicast answers, resends, packet numbers past 2^32; frames counted as the kernel does."""
    workers = 3
    group_ip, group_mac = "239.66.0.3", "01:00:5e:42:00:03"
    with StarOfHosts(workers + 1) as star, LauncherProcess() as launcher:
        job = star.job(
            workers,
            training=TRAINING,
            lanes=64,
            designated_switches=[9],
            acknowledgement="multicast",
            multicast_ip=group_ip,
            multicast_mac=group_mac,
            first_packet_number=(1 << 32) - 20,
        )
        ports = {
            f"port{host}": {**star.agent(host, ""), "worker": host - 1 if host else None}
            for host in range(workers + 1)
        }
        config = {"ports": ports, "group_ip": group_ip, "group_mac": group_mac, "number": 9, "slots": 16}
        config |= {"jobs": [job.job], "loss": 0.03, "duplicate": 0.03, "seed": 5}
        enter = ["nsenter", f"--net=/proc/{star.middle.pid}/ns/net"]
        switch = subprocess.Popen(
            [*enter, sys.executable, "-m", "tests.emulation.slot_switch", json.dumps(config)], cwd=ROOT
        )
        try:
            launcher.start(star, job)
            train(launcher, job)
        finally:
            switch.kill()
            switch.wait()
        statistics = stop(launcher, job)
        for host in range(workers + 1):
            assert_counts_like_the_kernel(star, host, statistics[f"worker {host - 1}" if host else "server"])
        assert_equals_reference(launcher.events, job)
        server = statistics["server"]
        assert server["merged_partials"] > 0
        resends = [
            statistics[f"worker {index}"]["timeout_resends"] + statistics[f"worker {index}"]["early_resends"]
            for index in range(workers)
        ]
        assert sum(resends) > 0
        merged_or_not = ("merged_singles", "merged_partials", "duplicates", "overlaps", "rejected")
        assert sum(server[kind] for kind in merged_or_not) == server["gradient_received"]["frames"]
        fragments = job.fragments_per_round * job.training.rounds
        for index in range(workers):
            sent = statistics[f"worker {index}"]["gradient_sent"]["frames"]
            assert sent == fragments + resends[index]


def test_a_worker_gives_up_when_nobody_answers() -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        job = star.job(1, training=TRAINING, give_up_us=300_000)
        launcher.start(star, job)
        launcher.tell("begin")
        (error,) = launcher.wait_for("error")
        assert error["name"] == "worker 0"
        assert "no answer from server 10.7.0.2 for 0.3 s" in error["message"]
        assert "\n" not in error["message"]


def test_stop_ends_workers_in_the_middle_and_end_of_input_ends_the_launcher() -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        launcher.start(star, star.job(1, training=TRAINING))
        launcher.tell("begin")  # nobody routes: the worker waits for its first answer
        launcher.tell("stop")
        launcher.wait_for("stopped")
        assert {e["name"] for e in launcher.events if e["event"] == "final"} == {"worker 0", "server"}
        assert not [e for e in launcher.events if e["event"] == "done"]
        _, error_output = launcher.process.communicate(timeout=30)
        assert launcher.process.returncode == 0
        assert error_output == b""


def test_bad_starts_become_one_line_errors_and_the_launcher_goes_on() -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        job = star.job(1, training=TRAINING)
        start = {"role": "worker", "index": 0, "host_pid": star.hosts[1].pid, "interface": "eth0"}
        cases: list[tuple[dict[str, Any], str]] = [
            ({"interface": "eth7"}, "interface eth7: No such device"),
            ({"host_pid": 999_999_999}, "no network namespace of process 999999999"),
            ({"index": 1}, "the job has workers 0 to 0, not 1"),
            ({"job": {"job": 0}}, "job description"),
            ({"role": "spectator"}, "bad command"),
        ]
        for number, (changes, message) in enumerate(cases, start=1):
            launcher.tell("start", **{**start, "job": job.model_dump(), **changes})
            error = launcher.wait_for("error", number)[-1]
            assert message in error["message"]
            assert "\n" not in error["message"]
        launcher.start(star, job)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_agents_die_with_the_launcher(number: signal.Signals) -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        launcher.start(star, star.job(1, training=TRAINING))
        children = Path(f"/proc/{launcher.process.pid}/task/{launcher.process.pid}/children").read_text().split()
        assert len(children) == 2
        descriptors = [os.pidfd_open(int(child)) for child in children]
        launcher.process.send_signal(number)
        _, error_output = launcher.process.communicate(timeout=30)
        assert launcher.process.returncode == -number
        assert error_output == b""
        for descriptor in descriptors:
            # Readable once the process has ended.
            assert select.select([descriptor], [], [], 10)[0] == [descriptor]
            os.close(descriptor)
