"""The C interface of queue pairs (runtime/engine/transport/queue_pairs.h) for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import c_uint8, c_uint32, c_uint64, c_void_p

from gradbed.switch.engine.abi import CLASSES

MOST_MESSAGE_BYTES = 2**31
CONGESTION_CONTROLS = ("none", "dctcp", "dcqcn")
"""By their numbers."""
RECOVERIES = ("go-back-n", "selective-repeat")
SENT, RECEIVED, FAILED, STREAMED, STREAM_FAILED, COLLECTIVE, COLLECTIVE_FAILED, COLLECTIVE_ENDED = range(8)
"""Kinds of completions."""


class QueuePairOptionsStruct(ctypes.Structure):
    """struct gb_queue_pair_options."""

    _fields_ = (
        ("window_bytes", c_uint64),
        ("rate_bps", c_uint64),
        ("timeout_ns", c_uint64),
        ("number", c_uint32),
        ("peer_number", c_uint32),
        ("mtu_bytes", c_uint32),
        ("give_up_after", c_uint32),
        ("acknowledge_every", c_uint32),
        ("priority", c_uint32),
        ("reordering_packets", c_uint32),
        ("congestion_control", c_uint32),
        ("recovery", c_uint32),
        ("first_psn", c_uint32),
        ("src_ip", c_uint32),
        ("dst_ip", c_uint32),
        ("for_collectives", c_uint32),
        ("src_mac", c_uint8 * 6),
        ("dst_mac", c_uint8 * 6),
    )


class CompletionStruct(ctypes.Structure):
    """struct gb_completion."""

    _fields_ = (
        ("tag", c_uint64),
        ("size_bytes", c_uint64),
        ("time_ns", c_uint64),
        ("data", c_void_p),
        ("kind", c_uint32),
        ("pair", c_uint32),
    )


class QueuePairStatisticsStruct(ctypes.Structure):
    """struct gb_queue_pair_statistics."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "sent_packets",
            "sent_bytes",
            "retransmissions",
            "timeouts",
            "received_packets",
            "received_bytes",
            "duplicates",
            "out_of_order",
            "marked",
            "acknowledgements_sent",
            "negatives_sent",
            "cnps_sent",
            "cnps_received",
            "unacknowledged_bytes",
            "window_bytes",
            "rate_bps",
        )
    )


class ConsumerCountsStruct(ctypes.Structure):
    """struct gb_consumer_counts."""

    _fields_ = (
        *((name, c_uint64) for name in ("sent_frames", "sent_bytes", "received_frames", "received_bytes", "unknown")),
        ("sent_classes", c_uint64 * CLASSES),
        ("received_classes", c_uint64 * CLASSES),
    )
