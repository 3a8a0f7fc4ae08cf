"""Profile of the resources that all processes of a pid namespace hold, from /proc."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OTHERS = "others"
"""The role of processes that have none: the shells of hosts and switches, process 1."""


SAMPLES, BETWEEN_SAMPLES_S = 5, 0.05

_M_ARENA_MAX, _M_PERTURB, _M_TRIM_THRESHOLD = -8, -6, -1  # <malloc.h>
_PERTURB_BYTE, _TRIM_THRESHOLD_BYTES = 0xA5, 128 << 10
_PR_SET_THP_DISABLE = 41  # <sys/prctl.h>


def keep_no_free_memory() -> None:
    """Make the resident memory of this process and its children what they have allocated.

    By default glibc keeps arenas for threads and ever larger free blocks, and the kernel fills holes with large
    pages: resident memory grows while the memory in use stays the same.
    """
    options = {
        "MALLOC_ARENA_MAX": 1,
        "MALLOC_PERTURB_": _PERTURB_BYTE,
        "MALLOC_TRIM_THRESHOLD_": _TRIM_THRESHOLD_BYTES,
    }
    os.environ |= {name: str(value) for name, value in options.items()}
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, value in zip((_M_ARENA_MAX, _M_PERTURB, _M_TRIM_THRESHOLD), options.values(), strict=True):
            libc.mallopt(option, value)
    libc.prctl(_PR_SET_THP_DISABLE, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3)


@dataclass(frozen=True)
class Process:
    """A process and its resources."""

    pid: int
    command: tuple[str, ...]
    """The program and its arguments."""
    resident_bytes: int
    descriptors: int
    threads: int
    network: str
    """Its network namespace, as the kernel numbers these."""


def processes() -> list[Process]:
    """Return all processes in /proc except those that end meanwhile or may not be read."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            found.append(_process(int(pid)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return sorted(found, key=lambda process: process.pid)


def _process(pid: int) -> Process:
    status = dict(line.split(":", 1) for line in _contents(pid, "status").splitlines() if ":" in line)
    return Process(
        pid=pid,
        command=tuple(_contents(pid, "cmdline").split("\0")[:-1]),
        resident_bytes=1024 * int(status["VmRSS"].split()[0]) if "VmRSS" in status else 0,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(status["Threads"]),
        network=os.readlink(f"/proc/{pid}/ns/net"),
    )


def _contents(pid: int, name: str) -> str:
    # No Path: it interns its parts, and here these are the numbers of all processes there ever were.
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()


def role_of(process: Process, modules: Mapping[str, str], own: str) -> str:
    """Return the role of a process by the module that it runs (python -m); this process has the role `own`."""
    if process.pid == os.getpid():
        return own
    words = process.command
    started = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    return modules.get(started, OTHERS)


def held_by_roles(modules: Mapping[str, str], own: str) -> dict[str, int]:
    """Return resident_bytes, descriptors and threads of each role as ROLE_WHAT, and the totals of all.

    Processes of one role are summed. The totals are processes, networks and interfaces.
    """
    every = processes()
    counts: dict[str, int] = {}
    for process in every:
        role = role_of(process, modules, own)
        for what in ("resident_bytes", "descriptors", "threads"):
            counts[f"{role}_{what}"] = counts.get(f"{role}_{what}", 0) + getattr(process, what)
    networks, interfaces = networks_of(every)
    return {**counts, "processes": len(every), "networks": networks, "interfaces": interfaces}


def least_of_several(profile: Callable[[], Mapping[str, int]]) -> dict[str, int]:
    """Take some profiles in a row, and return the minimum of each quantity.

    A connection that is just being closed is no leak, and a leak is in all of them.
    """
    samples = []
    for _ in range(SAMPLES):
        samples.append(profile())
        time.sleep(BETWEEN_SAMPLES_S)
    names = dict.fromkeys(name for sample in samples for name in sample)
    return {name: min(sample.get(name, 0) for sample in samples) for name in names}


def networks_of(every: Sequence[Process]) -> tuple[int, int]:
    """Return the number of network namespaces of these processes, and of the interfaces in them."""
    one_of_each = {process.network: process.pid for process in every}
    return len(one_of_each), sum(_interfaces(pid) for pid in one_of_each.values())


def _interfaces(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return sum(":" in line for line in lines)


def mounts() -> int:
    """Return the number of mounts."""
    return len(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines())


def files_below(folder: Path) -> Iterator[Path]:
    """Yield files, sockets and links, but no folders."""
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)
