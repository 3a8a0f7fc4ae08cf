"""The C interface of what is looked at in every frame (frames.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path

from gradbed.common.c_library import shared_library

FRAMES_SOURCE = Path(__file__).with_name("frames.c")


class WordStruct(ctypes.Structure):
    """struct gb_word."""

    _fields_ = (("offset", c_uint32), ("mask", c_uint16), ("value", c_uint16), ("last", c_uint32))


@functools.cache
def frames_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    # PyDLL: calls are too short to let go of the interpreter's lock.
    path = shared_library("gradbed-frames", [FRAMES_SOURCE], include_dirs=[FRAMES_SOURCE.parent])
    library = ctypes.PyDLL(str(path))
    frames = (c_void_p, c_uint64, c_void_p, c_uint64)
    for name, arguments in (
        ("gb_count_classes", (c_void_p, c_uint64, c_void_p, *frames)),
        ("gb_datagrams_to", (c_uint32, c_void_p, *frames)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = c_uint64, arguments
    return library
