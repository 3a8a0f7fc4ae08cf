"""Worker and server agents in network namespaces, over Linux routing."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.systems.aggregation.phase import agent_specs
from gradbed.formats.aggregation import GRADIENT_PORT
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.aggregation.config import AggregationJob
from tests.emulation.agent_hosts import LauncherProcess, StarOfHosts, start_fields

pytestmark = pytest.mark.root

TRAINING = {"kind": "training", "hidden_units": 8, "rounds": 6, "batch_samples": 16}


def assert_equals_reference(events: list[dict[str, Any]], job: AggregationJob) -> None:
    """Every worker has, after every round, the reference's weights, bit for bit."""
    assert isinstance(job.workload, TrainingSettings)
    expected = list(reference(job.workload, len(job.workers), job.lanes))
    for worker in job.workers:
        rounds = [
            e for e in events if (e["event"], e["job"], e["name"]) == ("round", job.job, f"worker {worker.index}")
        ]
        assert [r["round"] for r in rounds] == list(range(job.workload.rounds))
        assert [r["weights_sha256"] for r in rounds] == [r.weights_sha256 for r in expected]
        assert [r["loss"] for r in rounds] == [r.losses[worker.index] for r in expected]
        assert all(0 < r["seconds"] <= r["total_seconds"] for r in rounds)
        if worker.index == 0:
            assert [r["accuracy"] for r in rounds] == [r.accuracy for r in expected]


def train(launcher: LauncherProcess, job: AggregationJob) -> None:
    """Begin, and wait for all to be done."""
    first = len(launcher.events)
    launcher.tell("begin", job=job.job)
    launcher.wait_for("done", len(job.workers) + 1, first)


def stop(launcher: LauncherProcess, job: AggregationJob) -> dict[str, dict[str, Any]]:
    """The agents' final statistics by name."""
    first = len(launcher.events)
    launcher.tell("stop", job=job.job)
    (stopped,) = launcher.wait_for("stopped", 1, first)
    assert stopped["job"] == job.job
    final = [e for e in launcher.events[first:] if (e["event"], e["job"]) == ("final", job.job)]
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
    """Two jobs, one after the other. Counts are the kernel's and what fragments need; nothing answers with ICMP."""
    with StarOfHosts(4) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for number, workers in ((3, 3), (4, 2)):
            first = len(launcher.events)
            # No resends, however slow the machine: the counts are exact.
            job = star.job(workers, job=number, workload=TRAINING, min_timeout_us=10_000_000)
            launcher.start(star, job)
            train(launcher, job)
            statistics = stop(launcher, job)
            if number == 3:
                for host in range(workers + 1):
                    name = f"worker {host - 1}" if host else "server"
                    assert_counts_like_the_kernel(star, host, statistics[name])
            assert_equals_reference(launcher.events[first:], job)
            fragments = job.fragments_per_round * job.workload.rounds
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


def test_two_jobs_at_once() -> None:
    """Each has its own begin, end and statistics; one trains, the other sums random gradients that overflow."""
    with StarOfHosts(6) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        training = star.job(2, job=3, workload=TRAINING, min_timeout_us=10_000_000)
        settings = SyntheticSettings(values=10_000, rounds=4, magnitude=(1 << 31) - 1)
        synthetic = star.job(2, 3, job=4, workload=settings.model_dump(), min_timeout_us=10_000_000)
        for job in (training, synthetic):
            launcher.start(star, job)
        launcher.tell("begin", job=4)
        launcher.wait_for("done", 3)
        assert {event["job"] for event in launcher.events if event["event"] == "round"} == {4}
        expected = list(synthetic_reference(settings, 2, synthetic.lanes))
        for name in ("worker 0", "worker 1"):
            rounds = [e for e in launcher.events if (e["event"], e["job"], e["name"]) == ("round", 4, name)]
            assert [r["sums_sha256"] for r in rounds] == expected
        assert stop(launcher, synthetic)["server"]["shifted_acks"] > 0
        train(launcher, training)
        assert_equals_reference(launcher.events, training)
        stop(launcher, training)


def test_a_killed_agent_may_be_started_again_and_the_launcher_gives_signs_of_life() -> None:
    """The second server of the job sums, as if the first had never been."""
    with StarOfHosts(2) as star, LauncherProcess("--sign-of-life", "0.01") as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        job = star.job(1, workload=TRAINING)
        launcher.start(star, job)
        launcher.tell("kill", job=3, name="server")
        (killed,) = launcher.wait_for("killed")
        assert (killed["job"], killed["name"]) == (3, "server")
        launcher.tell("kill", job=3, name="server")
        (error,) = launcher.wait_for("error")
        assert error["message"] == "there is no agent server of job 3 to be killed"
        first = len(launcher.events)
        launcher.tell("start", **start_fields(star, agent_specs(job)[0]))
        launcher.wait_for("ready", 1, first)
        train(launcher, job)
        stop(launcher, job)
        assert_equals_reference(launcher.events[first:], job)
        assert launcher.signs_of_life > 0


def test_nobody_answers_for_a_killed_agent() -> None:
    """Its port is free then, but its host is as dead as the agent."""
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        star.middle.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

        def unreachable(host: int) -> int:
            send = f"import socket; socket.socket(2, 2).sendto(b'?', ('{star.ip(host)}', {GRADIENT_PORT}))"
            star.middle.run(sys.executable, "-c", send)
            star.middle.run("ping", "-c", "1", "-W", "5", star.ip(host))  # by now it has taken that in
            return unreachable_sent(star, host)

        assert unreachable(0) == 1
        launcher.start(star, star.job(1, workload=TRAINING))
        assert unreachable(0) == 1
        launcher.tell("kill", job=3, name="server")
        launcher.wait_for("killed")
        assert unreachable(0) == 1


def test_stop_ends_workers_in_the_middle_and_end_of_input_ends_the_launcher() -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        launcher.start(star, star.job(1, workload=TRAINING))
        launcher.tell("begin")  # nobody routes: the worker waits for its first ACK
        launcher.tell("stop")
        launcher.wait_for("stopped")
        assert {e["name"] for e in launcher.events if e["event"] == "final"} == {"worker 0", "server"}
        assert not [e for e in launcher.events if e["event"] == "done"]
        _, error_output = launcher.process.communicate(timeout=30)
        assert launcher.process.returncode == 0
        assert error_output == b""


def test_bad_starts_become_one_line_errors_and_the_launcher_goes_on() -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        job = star.job(1, workload=TRAINING)
        start = start_fields(star, agent_specs(job)[1])
        cases: list[tuple[dict[str, Any], str]] = [
            ({"interfaces": ["eth7"]}, "interface eth7: No such device"),
            ({"interfaces": []}, "worker 2 has 0 interfaces, none with the number 0"),
            ({"host_pid": 999_999_999}, "no network namespace of process 999999999"),
            ({"config": {**start["config"], "index": 1}}, "the job has workers 0 to 0, not 1"),
            ({"config": {"index": 0, "job": {"job": 0}}}, "config, job.job: "),
            ({"agent": "gradbed.hosts.systems.aggregation.agents:spectator"}, "no function is called"),
            ({"agent": "no.such.module:main"}, "no function is called 'no.such.module:main'"),
            ({"agent": "gradbed.hosts.systems.aggregation.agents"}, 'should be "module:function"'),
            ({"agent": "gradbed.hosts.agents.launching:write_event"}, "annotated with its pydantic model"),
            ({"role": "spectator"}, "bad command, start.role"),
        ]
        for number, (changes, message) in enumerate(cases, start=1):
            launcher.tell("start", **{**start, "name": f"worker {number}", **changes})
            error = launcher.wait_for("error", number)[-1]
            assert message in error["message"]
            assert "\n" not in error["message"]
        launcher.start(star, job)
        launcher.tell("start", **start)
        assert launcher.wait_for("error", len(cases) + 1)[-1]["message"] == "job 3 has an agent worker 0 already"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_agents_die_with_the_launcher(number: signal.Signals) -> None:
    with StarOfHosts(2) as star, LauncherProcess() as launcher:
        launcher.start(star, star.job(1, workload=TRAINING))
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


def test_a_kernel_is_silent_while_an_agent_stands_for_its_host() -> None:
    """Nothing is answered meanwhile, and everything before and afterwards."""
    silence = (
        "import sys, time; from gradbed.hosts.agents.kernel.namespace import silent_kernel\n"
        "with silent_kernel('eth0'): print('silent', flush=True); sys.stdin.readline()\n"
        "print('over', flush=True)"
    )
    with StarOfHosts(1) as star:

        def answers() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):
                star.middle.run("ping", "-c", "1", "-W", "1", star.ip(0))
                return True
            return False

        assert answers()
        inside = ["nsenter", f"--net=/proc/{star.hosts[0].pid}/ns/net", sys.executable, "-c", silence]
        with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "silent\n"
            assert not answers()
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "over\n"
            assert answers()
