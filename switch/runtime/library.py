"""The runtime library: every C file below this folder, built once and loaded for all switches of the process.

What its headers declare, they alone declare: Python has structs, constants and functions from them.
"""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path

from gradbed.common.c_headers import CHeaders, DeclaredCDLL
from gradbed.common.c_library import shared_library
from gradbed.common.errors import UserError

RUNTIME_DIR = Path(__file__).resolve().parent
"""C files that every program needs; includes are relative to it."""
RUNTIME_SOURCES = tuple(sorted(RUNTIME_DIR.rglob("*.c")))
RUNTIME_HEADERS = tuple(sorted(RUNTIME_DIR.rglob("*.h")))

STATE_HEADERS = CHeaders(
    RUNTIME_DIR / "program.h", RUNTIME_DIR / "state/state.h", *sorted((RUNTIME_DIR / "externs").glob("*.h"))
)
"""A program, and the state of a switch that runs it, with all externs."""
ENGINE_HEADERS = CHeaders(
    RUNTIME_DIR / "engine/engine.h",
    RUNTIME_DIR / "engine/transport/queue_pairs.h",
    RUNTIME_DIR / "engine/transport/fragment_streams.h",
    RUNTIME_DIR / "engine/transport/collectives/collectives.h",
    uses=(STATE_HEADERS,),
)
"""The data plane."""
TRACE_HEADERS = CHeaders(RUNTIME_DIR / "trace.h", uses=(STATE_HEADERS,))
"""What instrumented programs report."""

_UNDEFINED = re.compile(r"undefined symbol: (\w+)")


def build_runtime() -> Path:
    """Return the library's file, built if its sources have changed.

    Raises UserError without a C compiler, and with the compiler's text if it refuses a source.
    """
    notice = "building the switch's runtime"
    try:
        return shared_library("gradbed-runtime", RUNTIME_SOURCES, include_dirs=(RUNTIME_DIR,), notice=notice)
    except RuntimeError as error:
        raise UserError(str(error)) from None


@functools.cache
def runtime_library() -> ctypes.CDLL:
    """Build the runtime if it changed, and load it.

    It is loaded with RTLD_GLOBAL, since the libraries of programs refer to its symbols: load it before them.
    Raises UserError as build_runtime does.
    """
    return DeclaredCDLL(str(build_runtime()), mode=ctypes.RTLD_GLOBAL)


def program_library(path: Path) -> ctypes.CDLL:
    """Load the library of a program, after that of the runtime.

    Raises UserError if the program calls a function that the runtime does not have.
    """
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        missing = _UNDEFINED.search(str(error))
        if missing is None:
            raise
        raise UserError(f"no C file defines {missing[1]} (switch/runtime/externs)") from None
