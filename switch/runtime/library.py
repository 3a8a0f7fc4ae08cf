"""The runtime library: every C file below this folder, built once and loaded for all switches of the process."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from gradbed.common.c_library import shared_library

RUNTIME_DIR = Path(__file__).resolve().parent
"""C files that every program needs; includes are relative to it."""
RUNTIME_SOURCES = tuple(sorted(RUNTIME_DIR.rglob("*.c")))
RUNTIME_HEADERS = tuple(sorted(RUNTIME_DIR.rglob("*.h")))


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
