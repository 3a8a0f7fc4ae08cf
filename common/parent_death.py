"""A child process that ends together with the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int | None = None) -> None:
    """Be killed when the thread that forked this process ends (prctl(2), PR_SET_PDEATHSIG). OSError.

    parent_pid: of the process that forked this one, if it is known, so that a parent that has ended before the call
    is noticed: this process then ends at once.
    """
    parent = os.getppid() if parent_pid is None else parent_pid
    if _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")
    if os.getppid() != parent:
        os._exit(1)
