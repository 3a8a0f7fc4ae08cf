"""An end for what does not come to one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from gradbed.common.errors import UserError

GRACE_S = 60.0
"""To take a network down in, after the limit."""
STATUS = 124
"""As of timeout(1)."""


@contextlib.contextmanager
def time_limit(limit_s: float | None) -> Iterator[None]:
    """UserError in the block once it has taken so long; where it does not end then either, the process does. None:
    no limit. Only the main thread gets signals: elsewhere there is no limit."""
    if limit_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    is_late = False

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal is_late
        if is_late:
            os._exit(STATUS)
        is_late = True
        raise UserError(f"not at its end after {limit_s:g} s")

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s, GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
