"""The data plane's C object: how all that belongs to an engine asks it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

from gradbed.switch.engine import abi


class _StateGuard:
    """Keeps the data plane out of the switches' state."""

    def __init__(self, library: ctypes.CDLL, engine: int) -> None:
        # Called without letting go of the interpreter's lock: a thread that held the engine's lock while it waited
        # for the interpreter's would keep packets waiting too. The data plane needs no interpreter, so it comes to
        # the end of its batch; Python's threads agree among themselves first.
        prototype = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
        self._lock = prototype(("gb_engine_lock", library))
        self._unlock = prototype(("gb_engine_unlock", library))
        self._engine = engine
        self._threads = threading.Lock()

    def __enter__(self) -> None:
        self._threads.acquire()
        self._lock(self._engine)

    def __exit__(self, *exception: object) -> None:
        self._unlock(self._engine)
        self._threads.release()


class EngineHandle:
    """An engine of C. `guard`: a context manager that keeps the data plane out of the switches' state."""

    def __init__(self, manual_clock: bool, lps: int = 1) -> None:
        self._library = abi.engine_library()
        self._functions: dict[str, Callable[..., int]] = {}
        self._pointer: int | None = self._library.gb_engine_create(int(manual_clock), lps)
        if not self._pointer:
            raise MemoryError("the data plane could not be set up: out of memory or file descriptors")
        self.guard = _StateGuard(self._library, self._pointer)

    def call(self, name: str, *arguments: object) -> int:
        """Return what gb_engine_NAME returns. RuntimeError once the engine was closed."""
        if self._pointer is None:
            raise RuntimeError("the engine was closed")
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, f"gb_engine_{name}")
        result: int = function(self._pointer, *arguments)
        return result

    def now_ns(self) -> int:
        """The engine's clock: CLOCK_MONOTONIC, or since 0 with a manual clock."""
        return int(self.call("now"))

    def _free(self) -> None:
        self._library.gb_engine_free(self._pointer)
        self._pointer = None
