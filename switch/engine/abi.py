"""The data plane's C interface (runtime/engine/engine.h) for ctypes; fields and values are those of the header."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable

from gradbed.switch.runtime.library import ENGINE_HEADERS, runtime_library
from gradbed.topo.link import LinkModel

MAX_PORTS = ENGINE_HEADERS.constant("GB_MAX_PORTS")
DROP_PORT = ENGINE_HEADERS.constant("GB_PORT_DROP")
NO_PORT = ENGINE_HEADERS.constant("GB_NO_PORT")
PRIORITIES = ENGINE_HEADERS.constant("GB_PRIORITIES")
MAX_FRAME_BYTES = ENGINE_HEADERS.constant("GB_MAX_FRAME_BYTES")
NEVER_NOTIFY = ENGINE_HEADERS.constant("GB_NEVER_NOTIFY")
TRAFFIC_HEADER_BYTES = ENGINE_HEADERS.constant("GB_TRAFFIC_HEADER_BYTES")
TRAFFIC_LEAST_BYTES = ENGINE_HEADERS.constant("GB_TRAFFIC_LEAST_BYTES")
CLASSES = ENGINE_HEADERS.constant("GB_CLASSES")
CLASS_WORDS = ENGINE_HEADERS.constant("GB_CLASS_WORDS")
HOST_EVENT_PACKET_IN = ENGINE_HEADERS.constant("GB_HOST_EVENT_PACKET_IN")
HOST_EVENT_DIGEST = ENGINE_HEADERS.constant("GB_HOST_EVENT_DIGEST")
HOST_EVENT_LOG = ENGINE_HEADERS.constant("GB_HOST_EVENT_LOG")


@ENGINE_HEADERS.declare("gb_link_model")
class LinkModelStruct(ctypes.Structure):
    """Model of one direction of a link, in integers."""

    @classmethod
    def of(cls, link: LinkModel, seed: int, direction: int) -> LinkModelStruct:
        """Return the model of one direction (0 or 1) of a link, each with a random generator of its own."""
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


@ENGINE_HEADERS.declare("gb_switch_options")
class SwitchOptionsStruct(ctypes.Structure):
    """Options of a switch."""


@ENGINE_HEADERS.declare("gb_link_statistics")
class LinkStatisticsStruct(ctypes.Structure):
    """Counts of one direction of a link."""


@ENGINE_HEADERS.declare("gb_pause")
class PauseStruct(ctypes.Structure):
    """A link direction and priority that waits for others."""


@ENGINE_HEADERS.declare("gb_device_statistics")
class DeviceStatisticsStruct(ctypes.Structure):
    """Counts of a switch's packets that did not leave through a port."""


@ENGINE_HEADERS.declare("gb_class_word")
class ClassWordStruct(ctypes.Structure):
    """A word of a pattern."""


@ENGINE_HEADERS.declare("gb_class_pattern")
class ClassPatternStruct(ctypes.Structure):
    """A pattern of the frames of a class."""


@ENGINE_HEADERS.declare("gb_link_classes")
class LinkClassesStruct(ctypes.Structure):
    """Packets by class, of one direction of a link."""


@ENGINE_HEADERS.declare("gb_device_classes")
class DeviceClassesStruct(ctypes.Structure):
    """Packets by class, of a switch."""


@ENGINE_HEADERS.declare("gb_capture_tap")
class CaptureTapStruct(ctypes.Structure):
    """Options of a capture at a port."""


@ENGINE_HEADERS.declare("gb_interface_statistics")
class InterfaceStatisticsStruct(ctypes.Structure):
    """Counts of a network interface."""


@ENGINE_HEADERS.declare("gb_engine_statistics")
class EngineStatisticsStruct(ctypes.Structure):
    """Counts of the engine."""


@ENGINE_HEADERS.declare("gb_drained")
class DrainedStruct(ctypes.Structure):
    """A frame that left through an open port."""


@ENGINE_HEADERS.declare("gb_host_event")
class HostEventStruct(ctypes.Structure):
    """A message of the data plane for the controller; `data` has `length` bytes."""


@ENGINE_HEADERS.declare("gb_stop")
class StopStruct(ctypes.Structure):
    """The state in which run_until stopped."""


@ENGINE_HEADERS.declare("gb_generator_options")
class GeneratorOptionsStruct(ctypes.Structure):
    """Datagrams that are generated."""


@ENGINE_HEADERS.declare("gb_sink_statistics")
class SinkStatisticsStruct(ctypes.Structure):
    """Generated datagrams that came to a port."""


def values(row: ctypes.Structure) -> dict[str, int]:
    """Return the members of a structure of numbers, by name."""
    return {field[0]: getattr(row, field[0]) for field in row._fields_}


@functools.cache
def engine_library() -> ctypes.CDLL:
    """Return the runtime library with the engine's functions declared."""
    library = runtime_library()
    ENGINE_HEADERS.bind(library)
    return library


# ---- The engine's handle ----


class _StateGuard:
    """Keeps the data plane out of the switches' state."""

    def __init__(self, library: ctypes.CDLL, engine: int) -> None:
        # Called without letting go of the interpreter's lock: a thread that held the engine's lock while it waited
        # for the interpreter's would keep packets waiting too. The data plane needs no interpreter, so it comes to
        # the end of its batch; Python's threads agree among themselves first.
        prototype = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
        self._lock = prototype(("gb_engine_lock", library))
        self._unlock = prototype(("gb_engine_unlock", library))
        self._engine = engine
        self._threads = threading.Lock()

    def __enter__(self) -> None:
        self._threads.acquire()
        self._lock(self._engine)

    def __exit__(self, *exception: object) -> None:
        self._unlock(self._engine)
        self._threads.release()


class EngineHandle:
    """Handle of an engine of C. `guard` is a context manager that keeps the data plane out of the switches' state."""

    def __init__(self, manual_clock: bool, lps: int = 1) -> None:
        self._library = engine_library()
        self._functions: dict[str, Callable[..., int]] = {}
        self._pointer: int | None = self._library.gb_engine_create(int(manual_clock), lps)
        if not self._pointer:
            raise MemoryError("the data plane could not be set up: out of memory or file descriptors")
        self.guard = _StateGuard(self._library, self._pointer)

    def call(self, name: str, *arguments: object) -> int:
        """Return what gb_engine_NAME returns. RuntimeError once the engine was closed."""
        if self._pointer is None:
            raise RuntimeError("the engine was closed")
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, f"gb_engine_{name}")
        result: int = function(self._pointer, *arguments)
        return result

    def now_ns(self) -> int:
        """Return the engine's clock in ns: CLOCK_MONOTONIC, or since 0 with a manual clock."""
        return int(self.call("now"))

    def _free(self) -> None:
        self._library.gb_engine_free(self._pointer)
        self._pointer = None
