"""Processors as the kernel tells of them, of the machine and of a run's processes, and which of these go before
others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# ---- The machine ----


@dataclass(frozen=True)
class MachineTimes:
    """Processor time of all processors together, in clock ticks, since the start of the machine."""

    busy: int
    idle: int
    stolen: int
    """Taken by a hypervisor for others."""

    def __sub__(self, other: MachineTimes) -> MachineTimes:
        return MachineTimes(self.busy - other.busy, self.idle - other.idle, self.stolen - other.stolen)

    @property
    def total(self) -> int:
        return self.busy + self.idle + self.stolen


def machine_times(stat: Path = Path("/proc/stat")) -> MachineTimes:
    """The sum over all processors now."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    return MachineTimes(busy=user + nice + system + irq + softirq, idle=idle + iowait, stolen=steal)


# ---- A run's processes ----


PROC = Path("/proc")

ROLES: Mapping[str, bytes] = {
    "switches": b"gradbed.switch.switch_process",
    "bmv2": b"simple_switch",
    "legacy": b"ovs-vswitchd",
    "agents": b"gradbed.hosts.agents",
    "controller": b"gradbed.controller.app",
}
"""Part of the command line by which a process of each role is known."""

DATA_PLANE = "data plane"
"""What switch/runtime/engine/engine.c calls its thread."""

SWITCH_ROLES = frozenset({"switches", "bmv2", "legacy"})


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
    """Return all threads of processes that have a role, by (pid, tid); none where the kernel does not count."""
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
    """Yield the folders of all processes that have a role, each with its role; this process is the "runner"."""
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
    """Return the role of a thread.

    Of the switch process's threads one moves packets; what the others wait for keeps no packet waiting.
    """
    if role != "switches":
        return role
    try:
        return role if _contents(task, "comm").strip() == DATA_PLANE.encode() else "switch control"
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


# ---- Priorities ----


NICENESS = -15
"""Weighs thirty times as much as an ordinary process (sched(7)), and still lets system services run."""

LAST = 19
"""The least that an ordinary process can weigh."""

REAL_TIME_PRIORITY = 1
"""The lowest: enough to go before all that has no such priority."""


def raise_priorities(proc: Path = PROC) -> None:
    """Raise the priorities of all processes of the run, and of what they start; no effect where that is forbidden.

    The thread that moves packets stands for hardware: hosts do not keep a real switch waiting. So it is scheduled in
    real time (SCHED_RR); the kernel leaves a twentieth of the time to others (sched_rt_runtime_us).
    """
    for process, role in run_processes(proc):
        # On Linux every thread has a niceness and a scheduling policy of its own.
        for thread in folders_of_threads(process):
            tid = int(os.path.basename(thread))
            with contextlib.suppress(OSError):
                if thread_role(role, thread) == "switches":
                    policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
                    os.sched_setscheduler(tid, policy, os.sched_param(REAL_TIME_PRIORITY))
                else:
                    os.setpriority(os.PRIO_PROCESS, tid, NICENESS)
        _set_session(process, NICENESS)


def go_last() -> None:
    """Give this process the time that no other takes, until `catch_up`.

    It must not be the first of a process group: it gets a session of its own.
    """
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, LAST)
    _set_session(f"{PROC}/self", LAST)


def catch_up(pid: int) -> None:
    """Give a process that went last as much time as this one."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, pid, niceness)
    _set_session(f"{PROC}/{pid}", niceness)


def _set_session(process: str, niceness: int) -> None:
    with contextlib.suppress(OSError), open(f"{process}/autogroup", "w", encoding="ascii") as file:
        file.write(str(niceness))
