"""The C interface of stream senders (stream_sender.h), and of what all senders share, for ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from gradbed.common.c_headers import CHeaders
from gradbed.common.c_library import shared_library

TRANSPORT_FOLDER = Path(__file__).resolve().parent
TRANSPORT_HEADERS = CHeaders(
    *(
        TRANSPORT_FOLDER / f"{name}.h"
        for name in ("congestion_window", "outstanding", "retransmission_timeout", "stream_sender")
    )
)


@TRANSPORT_HEADERS.declare("gb_congestion_window")
class WindowStruct(ctypes.Structure):
    """A congestion window."""


@TRANSPORT_HEADERS.declare("gb_stream_sender")
class StreamSenderStruct(ctypes.Structure):
    """The sending end of a stream."""


@functools.cache
def transport_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    path = shared_library(
        "gradbed-stream-sender",
        [TRANSPORT_FOLDER / "stream_sender.c"],
        include_dirs=(TRANSPORT_FOLDER,),
        # A product and a sum are rounded apart, as in Python, whatever the processor can do at once.
        extra_flags=("-ffp-contract=off",),
    )
    # PyDLL: calls are too short to let go of the interpreter's lock.
    library = ctypes.PyDLL(str(path))
    TRANSPORT_HEADERS.bind(library)
    return library
