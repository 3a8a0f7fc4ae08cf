"""The C interface of what is looked at in every frame (frames.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from gradbed.common.c_headers import CHeaders
from gradbed.common.c_library import shared_library

FRAMES_SOURCE = Path(__file__).with_name("frames.c")
FRAMES_HEADERS = CHeaders(FRAMES_SOURCE.with_suffix(".h"))


@FRAMES_HEADERS.declare("gb_word")
class WordStruct(ctypes.Structure):
    """A word of a class of frames."""


@functools.cache
def frames_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    # PyDLL: calls are too short to let go of the interpreter's lock.
    path = shared_library("gradbed-frames", [FRAMES_SOURCE], include_dirs=[FRAMES_SOURCE.parent])
    library = ctypes.PyDLL(str(path))
    FRAMES_HEADERS.bind(library)
    return library
