"""The sender's C interface (sender.h, packing.h, turn.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_bool, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path

from gradbed.common.c_library import shared_library
from gradbed.hosts.agents.frames.library import FRAMES_SOURCE

_HERE = Path(__file__).resolve().parent
_HOSTS = _HERE.parents[2]


class TransmissionStruct(ctypes.Structure):
    """struct gb_transmission."""

    _fields_ = (("fragment", c_int32), ("attempt", c_int32))


class StatisticsStruct(ctypes.Structure):
    """struct gb_sender_statistics."""

    _fields_ = tuple(
        (name, c_int64)
        for name in (
            "timeout_resends",
            "early_resends",
            "direct_copies",
            "given_up",
            "duplicate_acks",
            "stale_acks",
            "stale_requests",
        )
    )


class WindowStruct(ctypes.Structure):
    """struct gb_congestion_window."""

    _fields_ = (
        ("size", c_double),
        ("threshold", c_double),
        ("maximum", c_int64),
        ("counts_from", c_int64),
        ("acks", c_int64),
        ("total", c_int64),
        ("least", c_int64),
        ("greatest", c_int64),
        ("last", c_int64),
        ("decreases", c_int64),
        ("congestion_marks", c_int64),
        ("adapts", c_bool),
        ("heeds_losses", c_bool),
    )


class SenderStruct(ctypes.Structure):
    """The beginning of struct gb_sender."""

    _fields_ = (
        ("count", c_int64),
        ("next", c_int64),
        ("unacknowledged", c_int64),
        ("transmissions", POINTER(TransmissionStruct)),
        ("news", POINTER(c_int32)),
        ("positions", POINTER(c_int32)),
        ("statistics", StatisticsStruct),
        ("window", WindowStruct),
    )


class LayoutStruct(ctypes.Structure):
    """struct gb_gradient_layout."""

    _fields_ = (
        *(
            (name, c_int64)
            for name in (
                "frame_bytes",
                "lanes",
                "tos",
                "flags",
                "packet_number",
                "magnitude",
                "ecn_mask",
                "ce",
                "after_resend",
                "congestion",
            )
        ),
        ("of_attempt", c_int64 * 5),
    )


class WorkerStruct(ctypes.Structure):
    """struct gb_worker."""

    _fields_ = (
        ("sender", POINTER(SenderStruct)),
        ("layout", LayoutStruct),
        ("headers", c_void_p),
        ("header_count", c_int64),
        ("gradient", c_void_p),
        ("values", c_int64),
        ("out", c_void_p),
        ("sums", c_void_p),
        ("shifts", c_void_p),
        ("known", c_void_p),
        ("known_count", c_int64),
        ("known_bytes", c_int64),
        ("words", c_void_p),
        ("word_count", c_uint64),
        ("received_classes", c_void_p),
        ("sent_classes", c_void_p),
        ("sent", c_int64),
    )


NOTHING_DUE, ALL_THERE, UNUSUAL, NO_MEMORY = range(-1, -5, -1)
"""Of gb_worker_turn."""


@functools.cache
def sender_library() -> ctypes.CDLL:
    """Build it if it changed, and load it. UserError without a C compiler."""
    path = shared_library(
        "gradbed-aggregation-sender",
        [*sorted(_HERE.glob("*.c")), FRAMES_SOURCE],
        include_dirs=(_HERE, _HOSTS / "transport", FRAMES_SOURCE.parent),
        # A product and a sum are rounded apart, as in Python, whatever the processor can do at once.
        extra_flags=("-ffp-contract=off",),
    )
    # PyDLL: calls are too short to let go of the interpreter's lock.
    library = ctypes.PyDLL(str(path))
    sender, layout = POINTER(SenderStruct), POINTER(LayoutStruct)
    for name, result, arguments in (
        ("create", sender, (c_int64, c_int64, c_void_p, c_int64, c_int, c_int, c_int64, c_int64, c_uint64)),
        ("free", None, (sender,)),
        ("begin", c_int, (sender, c_uint32, c_int64, c_int64)),
        ("transmissions", c_int64, (sender, c_int64)),
        ("deadline_us", c_int64, (sender,)),
        ("acknowledge", c_int64, (sender, c_void_p, c_void_p, c_void_p, c_int64, c_int64)),
        ("request", None, (sender, c_uint32)),
        ("take", c_int64, (sender, layout, c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p)),
        ("pack", None, (sender, layout, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p)),
    ):
        function = getattr(library, f"gb_sender_{name}")
        function.restype, function.argtypes = result, arguments
    library.gb_worker_turn.restype = c_int64
    library.gb_worker_turn.argtypes = (POINTER(WorkerStruct), c_void_p, c_uint64, c_void_p, c_int64, c_int64)
    return library
