"""Lets a run's processes go before other programs of the machine, its switches before its hosts, and what can wait
after all others.

With autogroups (sched(7), "The autogroup feature") niceness counts only within a session, and each session has a
niceness of its own; the processes of a run have sessions of their own.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gradbed.experiments.fidelity.processes import PROC, folders_of_threads, run_processes, thread_role

NICENESS = -15
"""Weighs thirty times as much as an ordinary process (sched(7)), and still lets system services run."""

LAST = 19
"""The least that an ordinary process can weigh."""

REAL_TIME_PRIORITY = 1
"""The lowest: enough to go before all that has no such priority."""


def raise_priorities(proc: Path = PROC) -> None:
    """For all processes that the run has now, and what they start; without effect where that is forbidden.

    The thread that moves packets stands for hardware: hosts do not keep a real switch waiting. So it is scheduled in
    real time (SCHED_RR); the kernel leaves a twentieth of the time to others (sched_rt_runtime_us).
    """
    for process, role in run_processes(proc):
        # On Linux every thread has a niceness and a scheduling policy of its own.
        for thread in folders_of_threads(process):
            tid = int(os.path.basename(thread))
            with contextlib.suppress(OSError):
                if thread_role(role, thread) == "fabric":
                    policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
                    os.sched_setscheduler(tid, policy, os.sched_param(REAL_TIME_PRIORITY))
                else:
                    os.setpriority(os.PRIO_PROCESS, tid, NICENESS)
        _set_session(process, NICENESS)


def go_last() -> None:
    """This process gets what time no other takes, until `catch_up`. It must not be the first of a process group: it
    gets a session of its own."""
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, LAST)
    _set_session(f"{PROC}/self", LAST)


def catch_up(pid: int) -> None:
    """A process that went last gets as much as this one."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, pid, niceness)
    _set_session(f"{PROC}/{pid}", niceness)


def _set_session(process: str, niceness: int) -> None:
    with contextlib.suppress(OSError), open(f"{process}/autogroup", "w", encoding="ascii") as file:
        file.write(str(niceness))
