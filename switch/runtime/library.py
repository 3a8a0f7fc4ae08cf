"""The runtime library: every C file of this directory, built once and loaded for all switches of the process."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from switch.build import shared_library

RUNTIME_DIR = Path(__file__).resolve().parent


@functools.cache
def runtime_library() -> ctypes.CDLL:
    """Build the runtime if it changed, and load it.

    It is loaded with RTLD_GLOBAL, since the libraries of programs refer to its symbols: load it before them.
    Raises UserError without a C compiler.
    """
    sources = sorted(RUNTIME_DIR.glob("*.c"))
    path = shared_library("gradbed-runtime", sources, include_dirs=(RUNTIME_DIR,))
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
