"""What the scheduler did to the processes of a run: processor time, and time spent ready but waiting for a processor.

Read from /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst of Linux): nanoseconds on a processor,
nanoseconds runnable but waiting, and how often it was given a processor. Inside the sandbox /proc shows the
processes of the run and no others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

ROLES: Mapping[str, bytes] = {
    "fabric": b"switch.fabric",
    "bmv2": b"simple_switch",
    "legacy": b"ovs-vswitchd",
    "agents": b"hosts.agents",
    "controller": b"controller.app",
}
"""Part of the command line by which a process of each role is known."""

DATA_PLANE = "data plane"
"""What switch/runtime/engine/engine.c calls its thread."""

SWITCH_ROLES = frozenset({"fabric", "bmv2", "legacy"})


@dataclass(frozen=True)
class ThreadTimes:
    """Totals of one thread since its start. waits: how often it was given a processor."""

    role: str
    pid: int
    tid: int
    busy_ns: int
    waiting_ns: int
    waits: int


def thread_times(proc: Path = PROC) -> dict[tuple[int, int], ThreadTimes]:
    """All threads of processes that have a role, by (pid, tid). Empty where the kernel does not count."""
    found = {}
    for process, role in run_processes(proc):
        for task in _listed(process / "task"):
            try:
                busy, waiting, waits = (int(word) for word in (task / "schedstat").read_text().split())
            except (OSError, ValueError):
                continue  # it has just ended, or the kernel is built without CONFIG_SCHED_INFO
            pid, tid = int(process.name), int(task.name)
            found[pid, tid] = ThreadTimes(thread_role(role, task), pid, tid, busy, waiting, waits)
    return found


def run_processes(proc: Path = PROC) -> Iterator[tuple[Path, str]]:
    """The folders of all processes that have a role, each with its role; this process is the "runner"."""
    for process in _listed(proc):
        if not process.name.isdecimal():
            continue
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if process.name == str(os.getpid()):
            yield process, "runner"
            continue
        for role, mark in ROLES.items():
            if mark in command:
                yield process, role
                break


def thread_role(role: str, task: Path) -> str:
    """Of the fabric's threads one moves packets; what the others wait for keeps no packet waiting."""
    if role != "fabric":
        return role
    try:
        return role if (task / "comm").read_text().strip() == DATA_PLANE else "fabric control"
    except OSError:
        return role


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
