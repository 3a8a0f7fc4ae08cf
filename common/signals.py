"""Signals: as bytes on a pipe, and when a parent dies."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

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


@contextlib.contextmanager
def wakeups(numbers: set[signal.Signals], mask: set[int | signal.Signals] | None = None) -> Iterator[int]:
    """The reading end of a pipe that gets a byte, its number, for each signal while the block runs.

    Handlers are restored afterwards. mask: signals to block from now on; None: as they are. A byte waits until it is
    read: an event that a handler sets can be missed, or be waited for forever, when the signal comes while the main
    thread is just about to wait. sigwait would not do: a library may have started threads of its own (OpenBLAS does)
    that do not block the signals, and would then be handed them. Must be called in the main thread (ValueError).
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    former_wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    former_handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield read_end
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(former_wakeup)
        os.close(read_end)
        os.close(write_end)
