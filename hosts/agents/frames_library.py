"""The C interface of what is looked at in every frame (frames.c) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path

from common.compiled.c_library import shared_library


class WordStruct(ctypes.Structure):
    """struct gb_word."""

    _fields_ = (("offset", c_uint32), ("mask", c_uint16), ("value", c_uint16), ("last", c_uint32))


@functools.cache
def frames_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    # PyDLL: calls are too short to let go of the interpreter's lock.
    library = ctypes.PyDLL(str(shared_library("gradbed-frames", [Path(__file__).with_name("frames.c")])))
    frames = (c_void_p, c_uint64, c_void_p, c_uint64)
    for name, arguments in (
        ("gb_count_classes", (c_void_p, c_uint64, c_void_p, *frames)),
        ("gb_datagrams_to", (c_uint32, c_void_p, *frames)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = c_uint64, arguments
    return library
