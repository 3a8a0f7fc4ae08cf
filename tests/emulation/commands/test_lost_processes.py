"""A process of a run that is killed: one line, which names no class of Python, at once, and exit status 3."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import ROOT
from tests.listening import descendants
from tests.waiting import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.root]

RUN = ("run", "aggregation", "--clock", "real", "--topology", "star:3", "--workers", "2", "--rounds", "1000")


def of_module(pid: int, module: str) -> list[int]:
    """The processes below one that run a module, and have no child of that kind."""
    found = []
    for process in descendants(pid):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if module.encode() in words:
            found.append(int(process.name))
    return found


@pytest.mark.parametrize(
    ("module", "name"),
    [("gradbed.switch.switch_process", "switch process"), ("gradbed.controller.app", "controller")],
)
def test_a_process_that_is_killed(module: str, name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRADBED_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(
        [sys.executable, "-m", "gradbed", *RUN, "--output", str(tmp_path / "results")],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            # Its agents are there once the network is up.
            wait_until(lambda: bool(of_module(run.pid, "gradbed.hosts.agents.kernel.launcher")), timeout_s=300)
            os.kill(of_module(run.pid, module)[0], signal.SIGKILL)
            _, said = run.communicate(timeout=300)
        finally:
            run.kill()
    assert run.returncode == 3, said
    last = said.strip().splitlines()[-1]
    what, _, log = last.partition("; its log: ")
    assert what == f"gradbed: the {name} was ended by signal 9 (Killed)"
    assert Path(log).is_file()
    assert "Error" not in said and "Traceback" not in said
