"""The sender's C interface (sender.h, packing.h, fast_path.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from gradbed.common.c_headers import CHeaders
from gradbed.common.c_library import shared_library
from gradbed.hosts.agents.frames.counts import FRAMES_HEADERS, FRAMES_SOURCE
from gradbed.hosts.transport.library import TRANSPORT_FOLDER, TRANSPORT_HEADERS

_HERE = Path(__file__).resolve().parent


HEADERS = CHeaders(
    *(_HERE / name for name in ("sender.h", "packing.h", "fast_path.h", "round_trips.h")),
    uses=(FRAMES_HEADERS, TRANSPORT_HEADERS),
)


@HEADERS.declare("gb_transmission")
class TransmissionStruct(ctypes.Structure):
    """A fragment that is sent."""


@HEADERS.declare("gb_sender_statistics")
class StatisticsStruct(ctypes.Structure):
    """The counts of a sender."""


@HEADERS.declare("gb_sender")
class SenderStruct(ctypes.Structure):
    """A worker's side of a round."""


@HEADERS.declare("gb_gradient_layout")
class LayoutStruct(ctypes.Structure):
    """The places of fields in a frame."""


@HEADERS.declare("gb_worker")
class WorkerStruct(ctypes.Structure):
    """A worker's round with its frames."""


NOTHING_DUE, ALL_THERE, UNUSUAL, NO_MEMORY = (
    HEADERS.constant(f"GB_{name}") for name in ("NOTHING_DUE", "ALL_THERE", "UNUSUAL", "NO_MEMORY")
)
"""Of gb_worker_fast_path."""


@functools.cache
def sender_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    path = shared_library(
        "gradbed-aggregation-sender",
        [*sorted(_HERE.glob("*.c")), FRAMES_SOURCE],
        include_dirs=(_HERE, TRANSPORT_FOLDER, FRAMES_SOURCE.parent),
        # A product and a sum are rounded apart, as in Python, whatever the processor can do at once.
        extra_flags=("-ffp-contract=off",),
    )
    # PyDLL: calls are too short to let go of the interpreter's lock.
    library = ctypes.PyDLL(str(path))
    HEADERS.bind(library)
    return library


def int32s_at(address: int, count: int) -> list[int]:
    """Return the numbers of an array of the library's."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int32))[:count]
