"""What this process has of the machine, by name: what is there after a run and was not before was left behind."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>

ZOMBIE = "Z"
"""It has ended. That nobody has asked how is the fault of this process, to which orphans come (own_orphans)."""

PATIENCE_S = 3.0
"""The kernel takes interfaces and killed processes away in its own time."""

_libc = ctypes.CDLL(None, use_errno=True)


def belongings(folder: Path | None = None, aside: int | None = None) -> frozenset[str]:
    """In words: processes that this one or those below it started, and open descriptors (sockets, too).

    folder: where temporary files are, in a sandbox; then also those of gradbed (scripts of PyTorch and what they load
    leave others), and the sandbox's interfaces and the namespaces that were given a name there. Outside of one, other
    programs make and remove such things at any time. aside: a process that does not count, nor what it starts.
    """
    gc.collect()
    own = (*_processes(aside), *_descriptors())
    if folder is None:
        return frozenset(own)
    files = (f"file {each}" for each in folder.glob("gradbed-*"))
    return frozenset((*own, *_namespaces(), *_interfaces(), *files))


@contextlib.contextmanager
def own_orphans() -> Iterator[None]:
    """Processes below this one whose parent ends are this one's children meanwhile, not those of process 1."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))


def left_since(before: frozenset[str], folder: Path | None = None, aside: int | None = None) -> list[str]:
    """What is there now and was not then. Waits for what is about to go."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := belongings(folder, aside) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(left)


def _processes(aside: int | None) -> Iterator[str]:
    names, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]  # proc_pid_stat(5)
            pid, name = head.split(" (", 1)
            if int(pid) == aside:
                continue
            parents[int(pid)] = int(parent)
            if state != ZOMBIE:
                names[int(pid)] = f"process {pid} ({name})"
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return (names[pid] for pid in below & names.keys() - {os.getpid()})


def _descriptors() -> Iterator[str]:
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself has gone
            yield f"descriptor {each.name} ({os.readlink(each)})"


def _namespaces() -> Iterator[str]:
    """Those that are mounted, as by ip-netns(8)."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mounted, _, kind = line.partition(" - ")  # proc_pid_mountinfo(5)
        if kind.startswith("nsfs "):
            yield f"namespace {mounted.split()[4]}"


def _interfaces() -> Iterator[str]:
    return (f"interface {name}" for _, name in socket.if_nameindex())
