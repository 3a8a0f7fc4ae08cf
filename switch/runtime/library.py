"""The runtime library: every C file below this folder, built once and loaded for all switches of the process."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from switch.build import RUNTIME_DIR, RUNTIME_SOURCES, shared_library


def build_runtime() -> Path:
    """The library's file, built if its sources have changed. Raises UserError without a C compiler."""
    return shared_library("gradbed-runtime", RUNTIME_SOURCES, include_dirs=(RUNTIME_DIR,))


@functools.cache
def runtime_library() -> ctypes.CDLL:
    """Build the runtime if it changed, and load it.

    It is loaded with RTLD_GLOBAL, since the libraries of programs refer to its symbols: load it before them.
    Raises UserError without a C compiler.
    """
    return ctypes.CDLL(str(build_runtime()), mode=ctypes.RTLD_GLOBAL)
