"""Ctrl-C, which must not get lost."""

from __future__ import annotations

import signal
import sys
from typing import Any

AGAIN_S = 0.01


def raise_interrupts() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, unless this process was started with Ctrl-C ignored.

    Python throws away an exception that a finaliser or the callback of a weak reference raises, and the machinery of
    imports has such callbacks. So an interrupt that falls into one is raised again a moment later.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = _raise_again
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _raise_again(ignored: Any) -> None:
    """sys.unraisablehook."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(ignored)
