"""Who goes first: asked of the kernel, for processes that look like those of a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.experiments.validity.processes import (
    DATA_PLANE,
    LAST,
    NICENESS,
    catch_up,
    raise_priorities,
    run_processes,
)

pytestmark = pytest.mark.root

PROGRAM = f"""
import ctypes, threading, time
def work():
    ctypes.CDLL(None).prctl(15, b"{DATA_PLANE}")
    print("ready", flush=True)
    time.sleep(60)
threading.Thread(target=work).start()
time.sleep(60)
"""


@pytest.fixture
def proc(tmp_path: Path) -> Iterator[Path]:
    """A /proc with a switch process, an agent and a stranger, and no other process of the machine."""
    commands = [["gradbed.switch.switch_process"], ["gradbed.hosts.agents.kernel.launcher"], ["stranger"]]
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stdout=subprocess.PIPE, start_new_session=True)
        for words in commands
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (tmp_path / str(process.pid)).symlink_to(f"/proc/{process.pid}")
    yield tmp_path
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def forbidden() -> bool:
    """Whether a container keeps even root from it."""
    program = f"import os; os.setpriority(0, 0, {NICENESS}); os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode != 0


def threads(process: Path) -> dict[str, int]:
    """Thread ids by name; the main thread's is the program's."""
    return {(task / "comm").read_text().strip(): int(task.name) for task in (process / "task").iterdir()}


def test_switches_before_hosts_before_everybody_else(proc: Path) -> None:
    if forbidden():
        pytest.skip("needs CAP_SYS_NICE")
    raise_priorities(proc)
    for process, role in [(Path(folder), role) for folder, role in run_processes(proc)]:
        for name, tid in threads(process).items():
            if role == "switches" and name == DATA_PLANE:
                assert os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR
            else:
                assert os.getpriority(os.PRIO_PROCESS, tid) == NICENESS
        if (process / "autogroup").exists():
            deadline = time.monotonic() + 5
            while not (process / "autogroup").read_text().endswith(f"nice {NICENESS}\n"):
                assert time.monotonic() < deadline
    assert [role for _, role in run_processes(proc)].count("switches") == 1
    (stranger,) = {path.name for path in proc.iterdir()} - {Path(folder).name for folder, _ in run_processes(proc)}
    assert os.getpriority(os.PRIO_PROCESS, int(stranger)) == os.getpriority(os.PRIO_PROCESS, 0)


def test_what_goes_last_can_catch_up() -> None:
    """Both within its session and as a session, where the kernel has autogroups."""
    program = "from gradbed.experiments.validity.processes import go_last; go_last(); print(flush=True); input()"
    starts = f"import os, sys, time; os.fork() or exec({program!r}); os.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        assert parent.stdout.readline() == b"\n"
        last = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
        found = [_niceness(last)]
        catch_up(last)
        found.append(_niceness(last))
        parent.stdin.write(b"\n")
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert found == [{LAST}, {here}]
    assert parent.returncode == 0


def _niceness(pid: int) -> set[int]:
    """Of a process, and of its session where that has one."""
    session = Path(f"/proc/{pid}/autogroup")
    of_session = {int(session.read_text().split()[-1])} if session.exists() else set()
    return {os.getpriority(os.PRIO_PROCESS, pid)} | of_session
