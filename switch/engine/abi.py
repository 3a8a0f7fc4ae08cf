"""The data plane's C interface (runtime/engine/engine.h) for ctypes."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint8, c_uint32, c_uint64, c_void_p

from gradbed.switch.runtime.library import runtime_library
from gradbed.switch.state.replication import MAX_PORTS as MAX_PORTS
from gradbed.switch.state.replication import ReplicaStruct
from gradbed.topo.link import LinkModel

DROP_PORT = 511
NO_PORT = 2**32 - 1
PRIORITIES = 8
MAX_FRAME_BYTES = 65_553
NEVER_TOLD = 2**64 - 1
LATE_COUNTS = 24
LATENCY_COUNTS = 64
TRAFFIC_HEADER_BYTES = 42
CLASSES = 16
CLASS_WORDS = 6
TRAFFIC_LEAST_BYTES = TRAFFIC_HEADER_BYTES + 16


class LinkModelStruct(ctypes.Structure):
    """struct gb_link_model."""

    _fields_ = (
        ("rate_bps", c_uint64),
        ("delay_ns", c_uint64),
        ("jitter_ns", c_uint64),
        ("loss_threshold", c_uint64),
        ("duplicate_threshold", c_uint64),
        ("bit_error_rate", c_double),
        ("turn_ns", c_uint64),
        ("queue_packets", c_uint32),
        ("reorder", c_uint32),
        ("channels", c_uint32),
        ("first_turn", c_uint32),
        ("guard_ns", c_uint64),
        ("pfc_xoff_bytes", c_uint64),
        ("pfc_xon_bytes", c_uint64),
        ("seed", c_uint64),
    )

    @classmethod
    def of(cls, link: LinkModel, seed: int, direction: int) -> LinkModelStruct:
        """`direction` (0 or 1) gives the two directions of a link generators of their own."""
        return cls(
            rate_bps=link.rate_bps or 0,
            delay_ns=link.delay_us * 1000,
            jitter_ns=link.jitter_us * 1000,
            loss_threshold=int(link.loss * 2**64),
            duplicate_threshold=int(link.duplicate * 2**64),
            seed=(2 * seed + direction) % 2**64,
            queue_packets=link.queue_packets,
            reorder=link.reorder,
            channels=link.channels,
            first_turn=link.first_turn,
            turn_ns=link.turn_us * 1000,
            guard_ns=link.guard_us * 1000,
            bit_error_rate=link.bit_error_rate,
            pfc_xoff_bytes=link.pfc_xoff_bytes,
            pfc_xon_bytes=link.pfc_xon_bytes,
        )


class SwitchOptionsStruct(ctypes.Structure):
    """struct gb_switch_options."""

    _fields_ = (
        ("cpu_port", c_uint32),
        ("drop_port", c_uint32),
        ("priorities", c_uint32),
        ("seed", c_uint64),
        ("partition", c_uint32),
    )


class LinkStatisticsStruct(ctypes.Structure):
    """struct gb_link_statistics."""

    _fields_ = (
        ("device_id", c_uint64),
        ("port", c_uint64),
        ("outwards", c_uint64),
        ("packets", c_uint64),
        ("bytes", c_uint64),
        ("entered_bytes", c_uint64),
        ("channel_bytes", c_uint64 * PRIORITIES),
        ("queue_drops", c_uint64),
        ("queue_drop_bytes", c_uint64),
        ("losses", c_uint64),
        ("lost_bytes", c_uint64),
        ("duplicates", c_uint64),
        ("duplicate_bytes", c_uint64),
        ("backlogged_bytes", c_uint64),
        ("backlogged_ns", c_uint64),
        ("queued", c_uint64),
        ("in_flight", c_uint64),
        ("time_ns", c_uint64),
        ("pauses_sent", c_uint64 * PRIORITIES),
        ("pauses_received", c_uint64 * PRIORITIES),
        ("paused_ns", c_uint64 * PRIORITIES),
    )


class PauseStruct(ctypes.Structure):
    """struct gb_pause."""

    _fields_ = tuple((name, c_uint64) for name in ("device_id", "port", "outwards", "priority"))


class DeviceStatisticsStruct(ctypes.Structure):
    """struct gb_device_statistics."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "received",
            "no_program_drops",
            "swap_drops",
            "ingress_drops",
            "egress_drops",
            "no_port_drops",
            "no_group_drops",
            "priority_drops",
            "buffer_drops",
            "upcall_drops",
            "cloned",
            "replicated",
            "resubmitted",
            "recirculated",
            "no_entry_drops",
            "copied",
            "packet_ins",
            "packet_outs",
            "no_session_clones",
        )
    )


class ClassWordStruct(ctypes.Structure):
    """struct gb_class_word."""

    _fields_ = tuple((name, c_uint32) for name in ("offset", "mask", "value"))


class ClassPatternStruct(ctypes.Structure):
    """struct gb_class_pattern."""

    _fields_ = (("words", c_uint32), ("word", ClassWordStruct * CLASS_WORDS))


class LinkClassesStruct(ctypes.Structure):
    """struct gb_link_classes."""

    _fields_ = (
        ("device_id", c_uint64),
        ("port", c_uint64),
        ("outwards", c_uint64),
        *(
            (name, c_uint64 * CLASSES)
            for name in ("entered", "queue_drops", "started", "losses", "duplicates", "delivered", "refusals")
        ),
    )


class DeviceClassesStruct(ctypes.Structure):
    """struct gb_device_classes."""

    _fields_ = (
        *((name, c_uint64 * CLASSES) for name in ("from_controller", "copied", "ended", "handed")),
        ("left", c_uint64 * CLASSES * CLASSES),
    )


class CaptureTapStruct(ctypes.Structure):
    """struct gb_capture_tap."""

    _fields_ = tuple((name, c_uint32) for name in ("outwards", "arriving", "interface", "flags"))


class InterfaceStatisticsStruct(ctypes.Structure):
    """struct gb_interface_statistics."""

    _fields_ = (
        ("device_id", c_uint64),
        ("port", c_uint64),
        ("outwards", c_uint64),
        ("received", c_uint64),
        ("sent", c_uint64),
        ("socket_drops", c_uint64),
        ("send_errors", c_uint64),
        ("oversize_drops", c_uint64),
    )


class EngineStatisticsStruct(ctypes.Structure):
    """struct gb_engine_statistics."""

    _fields_ = (
        ("live_packets", c_uint64),
        ("pool_bytes", c_uint64),
        ("timers_fired", c_uint64),
        ("late_ns_total", c_uint64),
        ("late_ns_max", c_uint64),
        ("late_counts", c_uint64 * LATE_COUNTS),
    )


class DrainedStruct(ctypes.Structure):
    """struct gb_drained."""

    _fields_ = (("time_ns", c_uint64), ("device_id", c_uint64), ("port", c_uint32), ("length", c_uint32))


class UpcallStruct(ctypes.Structure):
    """struct gb_upcall, without the data that follow it."""

    _fields_ = (("device_id", c_uint64), ("kind", c_uint32), ("list_id", c_uint32), ("length", c_uint64))


def values(row: ctypes.Structure) -> dict[str, int]:
    """The members of a structure of numbers, by name."""
    return {field[0]: getattr(row, field[0]) for field in row._fields_}


class StopStruct(ctypes.Structure):
    """struct gb_stop."""

    _fields_ = (
        ("time_ns", c_uint64),
        ("due_count", c_uint32),
        ("upcalls", c_uint32),
        ("idle", c_uint32),
        ("paused", c_uint32),
    )


class GeneratorOptionsStruct(ctypes.Structure):
    """struct gb_generator_options."""

    _fields_ = (
        ("rate_bps", c_uint64),
        ("start_ns", c_uint64),
        ("stop_ns", c_uint64),
        ("packets", c_uint64),
        ("seed", c_uint64),
        ("frame_bytes", c_uint32),
        ("poisson", c_uint32),
        ("header", c_uint8 * TRAFFIC_HEADER_BYTES),
    )


class SinkStatisticsStruct(ctypes.Structure):
    """struct gb_sink_statistics."""

    _fields_ = (
        ("packets", c_uint64),
        ("bytes", c_uint64),
        ("first_ns", c_uint64),
        ("last_ns", c_uint64),
        ("latency_ns_total", c_uint64),
        ("latency_ns_min", c_uint64),
        ("latency_ns_max", c_uint64),
        ("latency_counts", c_uint64 * LATENCY_COUNTS),
    )


UPCALL_PACKET_IN = 1
UPCALL_DIGEST = 2
UPCALL_LOG = 3

_MODEL = POINTER(LinkModelStruct)
_REPLICAS = POINTER(ReplicaStruct)

# Name, result, arguments after the engine.
_FUNCTIONS: tuple[tuple[str, object, tuple[object, ...]], ...] = (
    ("free", None, ()),
    ("start", c_int, ()),
    ("stop", None, ()),
    ("record", c_int, (c_void_p,)),
    ("quiesce", c_int, (c_uint64,)),
    ("advance", c_int, (c_uint64, c_uint64)),
    ("run_until", c_int, (c_uint64, c_uint64, POINTER(StopStruct), POINTER(c_uint32), c_uint32)),
    ("now", c_uint64, ()),
    ("statistics", None, (POINTER(EngineStatisticsStruct),)),
    ("add_switch", c_int, (c_uint64, POINTER(SwitchOptionsStruct))),
    ("has_port", c_int, (c_uint64, c_uint32)),
    ("switch_start", c_uint64, (c_uint64,)),
    ("load", c_int, (c_uint64, c_void_p)),
    ("add_link", c_int, (c_uint64, c_uint32, c_uint64, c_uint32, _MODEL, _MODEL)),
    ("add_open_port", c_int, (c_uint64, c_uint32, _MODEL, _MODEL)),
    ("add_memory_port", c_int, (c_uint64, c_uint32, _MODEL, _MODEL)),
    ("add_interface", c_int, (c_uint64, c_uint32, c_char_p, _MODEL, _MODEL)),
    ("add_wire", c_int, (c_uint64, c_uint32, c_char_p, c_uint64, c_uint32, c_char_p, _MODEL, _MODEL)),
    ("add_card", c_int, (c_uint64, c_uint32, c_char_p, _MODEL, _MODEL)),
    ("set_link", c_int, (c_uint64, c_uint32, c_uint32, _MODEL)),
    ("set_link_up", c_int, (c_uint64, c_uint32, c_uint32)),
    ("capture_open", c_int, (c_int, c_uint32)),
    ("capture_tap", c_int, (c_uint32, c_uint64, c_uint32, POINTER(CaptureTapStruct))),
    ("capture_limit", c_int, (c_uint32, c_uint64, c_uint64)),
    ("capture_state", c_int, (c_uint32, POINTER(c_uint64))),
    ("capture_close", c_int, (c_uint32, POINTER(c_uint64))),
    ("multicast_group_set", c_int, (c_uint64, c_uint32, _REPLICAS, c_uint32)),
    ("multicast_group_delete", c_int, (c_uint64, c_uint32)),
    ("clone_session_set", c_int, (c_uint64, c_uint32, _REPLICAS, c_uint32, c_uint32, c_uint32)),
    ("clone_session_delete", c_int, (c_uint64, c_uint32)),
    ("open_inbox", c_int, (c_uint64, c_uint32, c_uint64)),
    ("close_inbox", c_int, (c_uint32,)),
    ("send", c_int, (c_uint32, c_void_p, c_uint64, c_void_p, c_void_p, c_uint32)),
    ("inbox_waiting", c_int, (c_uint32, POINTER(c_uint32))),
    ("receive", c_int, (c_uint32, c_void_p, c_uint64, c_void_p, c_void_p, c_uint32)),
    ("add_generator", c_int, (c_uint64, c_uint32, POINTER(GeneratorOptionsStruct))),
    ("add_sink", c_int, (c_uint64, c_uint32, c_uint32)),
    ("sink_statistics", c_int, (c_uint64, c_uint32, POINTER(SinkStatisticsStruct))),
    ("open_consumer", c_int, (c_uint64, c_uint32)),
    ("close_consumer", c_int, (c_uint32,)),
    ("connect_pair", c_int, (c_uint32, c_void_p)),
    ("send_message", c_int, (c_uint32, c_uint32, c_uint64, c_uint64, c_void_p)),
    ("told_descriptor", c_int, (c_uint64, c_uint32)),
    ("completions", c_int, (c_uint32, c_void_p, c_uint32)),
    ("take_contents", None, (c_void_p, c_uint64, c_void_p)),
    ("pair_statistics", c_int, (c_uint32, c_uint32, c_void_p)),
    ("consumer_counts", c_int, (c_uint32, c_void_p)),
    ("begin_collective", c_int, (c_uint32, c_void_p)),
    ("hold_collectives", c_int, (c_uint32, c_uint32)),
    ("collective_counts", c_int, (c_uint32, c_void_p)),
    ("open_stream", c_int, (c_uint32, c_void_p)),
    ("stream", c_int, (c_uint32, c_uint32, c_uint64, c_uint64, c_void_p, c_void_p)),
    ("stream_statistics", c_int, (c_uint32, c_uint32, c_void_p)),
    ("inject", c_int, (c_uint64, c_uint32, c_char_p, c_uint32)),
    ("packet_out", c_int, (c_uint64, c_char_p, c_uint32)),
    ("drain", c_int, (POINTER(DrainedStruct), POINTER(c_uint8))),
    ("link_statistics", c_uint32, (POINTER(LinkStatisticsStruct), c_uint32)),
    ("deadlock", c_uint32, (POINTER(PauseStruct), c_uint32)),
    ("interface_statistics", c_uint32, (POINTER(InterfaceStatisticsStruct), c_uint32)),
    ("device_statistics", c_int, (c_uint64, POINTER(DeviceStatisticsStruct))),
    ("count_classes", c_int, (POINTER(ClassPatternStruct), c_uint32)),
    ("link_classes", c_uint32, (POINTER(LinkClassesStruct), c_uint32)),
    ("device_classes", c_int, (c_uint64, POINTER(DeviceClassesStruct))),
    ("listen", c_int, (c_uint64, c_uint32)),
    ("set_windows", None, (c_uint64, c_uint64)),
    ("expect_no_upcalls", None, ()),
    ("silence", c_uint64, ()),
    ("upcall_wait", c_void_p, (c_uint64,)),
    ("upcall_close", None, ()),
)


@functools.cache
def engine_library() -> ctypes.CDLL:
    """The runtime library with the engine's functions declared."""
    library = runtime_library()
    library.gb_engine_create.restype = c_void_p
    library.gb_engine_create.argtypes = (c_int, c_uint32)
    library.gb_upcall_free.restype = None
    library.gb_upcall_free.argtypes = (c_void_p,)
    for name, result, arguments in _FUNCTIONS:
        function = getattr(library, f"gb_engine_{name}")
        function.restype = result
        function.argtypes = (c_void_p, *arguments)
    return library
