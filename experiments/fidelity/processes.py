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
    "fabric": b"gradbed.switch.fabric",
    "bmv2": b"simple_switch",
    "legacy": b"ovs-vswitchd",
    "agents": b"gradbed.hosts.agents",
    "controller": b"gradbed.controller.app",
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
        for task in folders_of_threads(process):
            try:
                busy, waiting, waits = (int(word) for word in _contents(task, "schedstat").split())
            except (OSError, ValueError):
                continue  # it has just ended, or the kernel is built without CONFIG_SCHED_INFO
            pid, tid = int(os.path.basename(process)), int(os.path.basename(task))
            found[pid, tid] = ThreadTimes(thread_role(role, task), pid, tid, busy, waiting, waits)
    return found


# Folders are text here, no Paths: these intern their parts, and a long run has many thousand numbers of processes.


def run_processes(proc: Path = PROC) -> Iterator[tuple[str, str]]:
    """The folders of all processes that have a role, each with its role; this process is the "runner"."""
    for pid in filter(str.isdecimal, _listed(str(proc))):
        process = f"{proc}/{pid}"
        try:
            command = _contents(process, "cmdline")
        except OSError:
            continue
        if pid == str(os.getpid()):
            yield process, "runner"
        elif roles := [role for role, mark in ROLES.items() if mark in command]:
            yield process, roles[0]


def folders_of_threads(process: str) -> list[str]:
    return [f"{process}/task/{tid}" for tid in _listed(f"{process}/task")]


def thread_role(role: str, task: str) -> str:
    """Of the fabric's threads one moves packets; what the others wait for keeps no packet waiting."""
    if role != "fabric":
        return role
    try:
        return role if _contents(task, "comm").strip() == DATA_PLANE.encode() else "fabric control"
    except OSError:
        return role


def _contents(folder: str, name: str) -> bytes:
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
