"""The C interface of collectives (runtime/engine/transport/collectives/collectives.h) for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_uint32, c_uint64, c_void_p

TURN_BITS = 18
"""The lowest of a message's tag."""
SEND, RECEIVE, ADD, COPY = range(4)
"""Kinds of steps."""


class ScheduleStruct(ctypes.Structure):
    """struct gb_schedule."""

    _fields_ = (
        ("steps", c_uint32),
        ("peers", c_uint32),
        *(
            (name, c_void_p)
            for name in (
                *("kinds", "waits", "dependents_from", "dependents"),
                *("peer", "turn", "receives_from", "receives"),
            )
        ),
    )


class CollectiveStruct(ctypes.Structure):
    """struct gb_collective."""

    _fields_ = (
        ("tag", c_uint64),
        ("schedule", POINTER(ScheduleStruct)),
        *((name, c_void_p) for name in ("pairs", "by_pair", "size_bytes", "buffer", "offset_bytes", "source_bytes")),
    )


class CollectiveCountsStruct(ctypes.Structure):
    """struct gb_collective_counts."""

    _fields_ = tuple((name, c_uint64) for name in ("messages", "bytes", "early"))
