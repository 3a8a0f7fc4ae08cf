"""Handling of Ctrl-C, so that it is never lost."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import Any, NoReturn

SAME_INTERRUPT_S = 1.0
"""Within this time a second SIGINT is the same one, sent by the terminal and by a parent."""

IMPORTS = "<frozen importlib._bootstrap>"


def raise_interrupts() -> None:
    """Make Ctrl-C raise KeyboardInterrupt, unless this process was started with Ctrl-C ignored.

    Python throws away an exception that a finaliser or the callback of a weak reference raises: it is raised again
    right after. Libraries throw it away while their modules are loaded (pydantic where it compares schemas), or leave
    locks in disorder (logging): an interrupt waits for imports to end, unless another follows.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    interrupts = _Interrupts()
    sys.unraisablehook = interrupts.ignored
    signal.signal(signal.SIGINT, interrupts.arrived)


class _Interrupts:
    def __init__(self) -> None:
        self._waiting_since_s: float | None = None
        self._import: FrameType | None = None
        """The import that is waited for."""

    def arrived(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT."""
        now_s = time.monotonic()
        since_s = now_s if self._waiting_since_s is None else self._waiting_since_s
        if _import_of(frame) is None or now_s - since_s > SAME_INTERRUPT_S:
            self._raise()
        self._wait(since_s, frame)

    def ignored(self, exception: Any) -> None:
        """Handle an exception that Python cannot raise (sys.unraisablehook)."""
        if issubclass(exception.exc_type, KeyboardInterrupt):
            self._wait(time.monotonic(), sys._getframe())
        else:
            sys.__unraisablehook__(exception)

    def _wait(self, since_s: float, frame: FrameType | None) -> None:
        self._waiting_since_s, self._import = since_s, _import_of(frame)
        # No timer: a trial's time limit has the only one.
        sys.setprofile(self._goes_on)

    def _goes_on(self, frame: FrameType, event: str, argument: Any) -> None:
        """Raise the interrupt once the import has ended; called at every call and return of a function."""
        # What an import raises at its return is not thrown away.
        if (frame is self._import and event == "return") or (self._import is None and frame.f_code not in _OWN):
            self._raise()

    def _raise(self) -> NoReturn:
        self._waiting_since_s = self._import = None
        sys.setprofile(None)
        raise KeyboardInterrupt


_OWN = {_Interrupts.ignored.__code__, _Interrupts._wait.__code__}


def _import_of(frame: FrameType | None) -> FrameType | None:
    """Return the outermost import in progress."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename == IMPORTS:
            found = frame
        frame = frame.f_back
    return found
