"""How an agent and its launcher talk: one-byte commands in, JSON lines of events out."""

from __future__ import annotations

import fcntl
import functools
import json
import os
from typing import Any

BEGIN = b"b"
STOP = b"s"

INTERFACES = "interfaces"
"""The event at the end of an agent's life: what its interfaces carried (interface_counts.py)."""


def write_event(descriptor: int, event: str, **fields: Any) -> None:
    """One JSON line to a pipe, whole: lines of several processes do not mix, however long they are."""
    line = memoryview((json.dumps({"event": event, **fields}) + "\n").encode())
    lock = _lock(os.getpid(), descriptor)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        while line:  # a pipe takes up to PIPE_BUF bytes at once for sure (pipe(7))
            line = line[os.write(descriptor, line) :]
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


@functools.cache
def _lock(pid: int, descriptor: int) -> int:
    """The same pipe, opened by this process (pid) itself: what is inherited would share one lock. A script that runs
    as its caller may not open root's pipe; it has that one, and its lines are short enough to be written at once."""
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_CLOEXEC)
    except PermissionError:
        return descriptor
