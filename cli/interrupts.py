"""Ctrl-C, which must not get lost."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import Any

AGAIN_S = 0.01
LONGEST_IMPORT_S = 2.0
"""A module that takes longer is interrupted where it is: it may be somebody's own, and never end."""

IMPORTS = "<frozen importlib._bootstrap>"


def raise_interrupts() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, unless this process was started with Ctrl-C ignored.

    Python throws away an exception that a finaliser or the callback of a weak reference raises, and libraries do so
    while their modules are loaded (pydantic where it compares schemas), or leave locks in disorder (logging). So
    an interrupt waits for imports to end, and one that falls into a finaliser is raised again a moment later.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    sys.unraisablehook = _raise_again
    signal.signal(signal.SIGINT, _Interrupts())


class _Interrupts:
    """The handler of SIGINT."""

    def __init__(self) -> None:
        self._waiting_since_s: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self._waiting_since_s is None:
            self._waiting_since_s = now_s
        if _imports(frame) and now_s - self._waiting_since_s < LONGEST_IMPORT_S:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
            return
        self._waiting_since_s = None
        raise KeyboardInterrupt


def _imports(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None


def _raise_again(ignored: Any) -> None:
    """sys.unraisablehook."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(ignored)
