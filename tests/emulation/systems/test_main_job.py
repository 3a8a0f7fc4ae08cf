"""The aggregation experiment as a person runs it: whole command, real switches, real training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation.switches.open_vswitch import require_open_vswitch
from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc
from tests.command import ROOT, gradbed
from tests.command import rows as rows_of

pytestmark = [pytest.mark.thorough, pytest.mark.root]

TIMEOUT_S = 240
PATIENT = ["--min-timeout-us", "4000000"]
"""With so much patience no worker resends, however busy the machine. (Nominal: emulated, 20 s.)"""
SMALL = ["--topology", "star:3", "--workers", "2", "--programmable", "1"]
MARK = "GRADBED_TEST_RUN"
FRAGMENTS = 14
"""Of 352 lanes, for the 4,810 parameters of the default network."""


def run(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return gradbed("run", "aggregation", "--output", output, *options, timeout_s=TIMEOUT_S)


def begun(output: Path, *options: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gradbed", "run", "aggregation", "--output", str(output), *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **more)


def rows(output: Path, name: str) -> list[dict[str, str]]:
    return rows_of(output / "aggregation" / "latest" / name)


def check_run(outcome: subprocess.CompletedProcess[str], output: Path, workers: int, rounds: int) -> None:
    """The run succeeded, which it does only if weights and counters agree, and left all that it should."""
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "bit-identical" in outcome.stdout
    latest = output / "aggregation" / "latest"
    assert (latest / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (latest / "figure.pdf").read_bytes().startswith(b"%PDF")
    of_rounds = rows(output, "rounds.csv")
    assert len(of_rounds) == 2 * rounds
    # Both phases sum the same integers, so they arrive at the same weights.
    assert len({row["result_sha256"] for row in of_rounds}) == rounds
    (trial,) = rows(output, "trials.csv")
    assert {row["digest"] for row in of_rounds} == {trial["digest"]}
    hosts = rows(output, "hosts.csv")
    assert len(hosts) == 2 * (workers + 1)
    assert {row["agrees"] for row in hosts} == {"True"}


def test_a_fat_tree_with_eight_workers(tmp_path: Path) -> None:
    check_run(run(tmp_path, "--rounds", "8", *PATIENT), tmp_path, workers=8, rounds=8)
    alone, in_network = rows(tmp_path, "summary.csv")
    assert (alone["phase"], in_network["phase"]) == ("parameter server", "in-network")
    assert int(alone["server_in_gradient_packets"]) == 8 * 8 * FRAGMENTS
    assert int(in_network["server_in_gradient_packets"]) == 8 * FRAGMENTS
    # Every fragment in the server's ToR, and once on the way there.
    assert int(in_network["slots_completed"]) == 2 * 8 * FRAGMENTS
    (trial,) = rows(tmp_path, "trials.csv")
    assert float(trial["server_share"]) == 1 / 8


# Switches linked so: tests/emulation/network/test_network_switches.py and test_link_faults.py.
@pytest.mark.nightly
def test_switches_that_are_linked_by_the_kernel(tmp_path: Path) -> None:
    options = "--links veth --topology leaf-spine:3,2,2 --workers 4 --placement shared-path --rate-mbps 0"
    more = "--rounds 4 --hidden-units 0 --lanes 64"
    check_run(run(tmp_path, *options.split(), *more.split()), tmp_path, workers=4, rounds=4)


# With P4 switches as legacy ones: tests/emulation/network/test_openflow.py, and every other test here.
@pytest.mark.parametrize("legacy", [pytest.param("p4", marks=pytest.mark.nightly), "openflow"])
def test_one_programmable_switch_among_legacy_ones(legacy: str, tmp_path: Path) -> None:
    if legacy == "openflow":
        skip_without(require_open_vswitch)
    # Two racks of two workers, and a third where the server is: some switch besides its ToR sums.
    options = ["--topology", "leaf-spine:3,1,2", "--workers", "4", "--rounds", "3", *PATIENT]
    options += ["--placement", "greedy", "--programmable", "1", "--legacy", legacy, "--rate-mbps", "10"]
    check_run(run(tmp_path, *options), tmp_path, workers=4, rounds=3)
    _, in_network = rows(tmp_path, "summary.csv")
    assert int(in_network["slots_completed"]) > 0
    (file,) = (tmp_path / "aggregation" / "latest" / "trials").glob("*/controller.json")
    programs = list(json.loads(file.read_text())["switches"].values())
    # One of four switches is chosen, and the server's ToR is programmable anyway.
    assert sorted(programs) == ["aggregation"] * 2 + [{"p4": "forward"}.get(legacy, legacy)] * 2


def skip_without(require: Callable[[], object]) -> None:
    try:
        require()
    except UserError as error:
        pytest.skip(str(error))


def test_real_bmv2(tmp_path: Path) -> None:
    skip_without(find_simple_switch_grpc)
    options = ["--switch", "bmv2", "--topology", "leaf-spine:2,1,2", "--workers", "3", "--delay-us", "0"]
    check_run(run(tmp_path, *options, "--rounds", "2"), tmp_path, workers=3, rounds=2)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that trains for long, in a session of its own; its processes carry MARK in their environment."""
    process = begun(
        tmp_path,
        *(*SMALL, "--rounds", "200", "--hidden-units", "0", "--scale", "0.005"),
        env={**os.environ, MARK: str(tmp_path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell that starts pytest in the background has SIGINT ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    wait_for(lambda: count_agents(tmp_path) == 3, process)
    yield process
    process.kill()
    process.wait()


def count_agents(mark: Path) -> int:
    """The launcher forks agents, so they have its command line; the launcher itself is not counted."""
    return sum(b"gradbed.hosts.agents.kernel.launcher" in line for line in marked(mark)) - 1


def marked(mark: Path) -> list[bytes]:
    """Command lines of all processes whose environment carries the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes())
            except OSError:
                continue  # it has just ended
    return found


def wait_for(condition: object, process: subprocess.Popen[str] | None = None, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert process is None or process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def network_state() -> tuple[list[str], list[str]]:
    """Interfaces and named namespaces of this network namespace."""
    interfaces = sorted(path.name for path in Path("/sys/class/net").iterdir())
    netns = Path("/run/netns")
    return interfaces, sorted(path.name for path in netns.iterdir()) if netns.exists() else []


def test_ctrl_c_takes_everything_down(running: subprocess.Popen[str], tmp_path: Path) -> None:
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Traceback" not in errors
    wait_for(lambda: not marked(tmp_path))


def test_sigkill_leaves_nothing_behind_and_the_next_run_works(running: subprocess.Popen[str], tmp_path: Path) -> None:
    before = network_state()
    running.kill()
    running.wait()
    wait_for(lambda: not marked(tmp_path))
    assert network_state() == before
    again = tmp_path / "again"
    check_run(run(again, "--rounds", "2", *SMALL), again, workers=2, rounds=2)


def test_two_runs_at_once(tmp_path: Path) -> None:
    """Both have an e1, an e1-eth1, an h1: each in namespaces of its own."""
    options = [*SMALL, "--rounds", "2"]
    outputs = [tmp_path / "first", tmp_path / "second"]
    for process in [begun(output, *options) for output in outputs]:
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
