"""The C interface of streams of fragments (runtime/engine/transport/fragment_streams.h) for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import c_uint8, c_uint32, c_uint64

from gradbed.switch.engine.abi import ClassPatternStruct

MOST_TEMPLATES = 64
MOST_TEMPLATE_BYTES = 192
NO_OFFSET = 2**32 - 1
ROLES = ("source", "sink", "server")
"""By their numbers."""


class StreamOptionsStruct(ctypes.Structure):
    """struct gb_stream_options."""

    _fields_ = (
        *((name, c_uint64) for name in ("timeout_ns", "everybody")),
        *(
            (name, c_uint32)
            for name in (
                *("number", "role", "window", "give_up_after", "payload_bytes", "reply_payload", "template_bytes"),
                *("template_count", "number_offset", "bits_offset", "magnitude_offset", "flags_offset", "again"),
                *("came_again", "direct_after"),
            )
        ),
        ("arrivals", ClassPatternStruct),
        ("direct", c_uint8 * MOST_TEMPLATE_BYTES),
        ("templates", c_uint8 * MOST_TEMPLATE_BYTES * MOST_TEMPLATES),
    )


class StreamStatisticsStruct(ctypes.Structure):
    """struct gb_stream_statistics."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in ("sent_fragments", "retransmissions", "timeouts", "received_fragments", "duplicates", "parts")
    )
