"""Captures: what passes ports of the data plane, as pcap or pcapng files."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradbed.common import capture_files
from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.switch.engine.abi import CaptureTapStruct, EngineHandle
from gradbed.switch.engine.statistics import Direction

Format = Literal["microseconds", "nanoseconds", "pcapng"]
_FORMATS: tuple[Format, ...] = ("microseconds", "nanoseconds", "pcapng")
_NO_LIMIT = 2**64 - 1


@dataclass(frozen=True)
class Tap:
    """Capture point at one direction of a port.

    Frames are recorded when the link begins to send them, those that it then loses included.
    """

    device_id: int
    port: int
    direction: Direction
    arriving: bool
    """Record frames at the far end of the link instead."""
    outbound: bool = True
    """The direction as the owner of the interface sees it."""


@dataclass(frozen=True)
class CaptureInterface:
    """An interface of a pcapng file, and where its frames come from."""

    name: str
    description: str
    taps: tuple[Tap, ...]


class Capture(Closing):
    """File to which the engine writes frames until it is closed, or the engine is; a context manager.

    Engine.capture and Engine.capture_interfaces make it. Times are those of the wall clock; with a manual clock,
    those of that clock. Links in memory can be captured like interfaces, and so can the CPU port. A port's direction
    can be in several captures, and once in each. The file is up to date whenever the data plane is idle.
    """

    def __init__(
        self, engine: EngineHandle, file: Path, kind: Format, interfaces: Sequence[CaptureInterface]
    ) -> None:
        self.file = file
        self._engine = engine
        header = b""
        if kind == "pcapng":
            header = capture_files.file_header(
                capture_files.PcapngInterface(each.name, each.description) for each in interfaces
            )
        number = engine.call("capture_open", _begun(file, header), _FORMATS.index(kind))
        if number < 0:
            raise MemoryError("out of memory for a capture")
        self._number: int | None = number
        self._packets = 0
        for place, interface in enumerate(interfaces):
            for tap in interface.taps:
                self._add(place, tap)

    def _add(self, interface: int, tap: Tap) -> None:
        flags = capture_files.OUTBOUND if tap.outbound else capture_files.INBOUND
        struct = CaptureTapStruct(tap.direction == "out", tap.arriving, interface, flags)
        code = self._engine.call("capture_tap", self._number, tap.device_id, tap.port, ctypes.byref(struct))
        if code < 0:
            self.close()
            if code == -errno.ENOMEM:
                raise MemoryError("out of memory for a capture")
            reason = "is named twice" if code == -errno.EEXIST else "does not exist"
            raise UserError(
                f"cannot capture {tap.direction!r} of port {tap.port} of switch {tap.device_id}: it {reason}"
            )

    def limit(self, packets: int | None, seconds: float | None) -> None:
        """Take so many packets at most, and none after so long from now, in time of the engine's clock."""
        for_ns = _NO_LIMIT if seconds is None else min(round(1e9 * seconds), _NO_LIMIT)
        self._engine.call("capture_limit", self._number, _NO_LIMIT if packets is None else packets, for_ns)

    @property
    def packets(self) -> int:
        """Return how many it has taken so far."""
        return self._state()[0]

    @property
    def is_over(self) -> bool:
        """Return whether it takes no more: its limit is reached, or its file could not be written."""
        return self._state()[1]

    def _state(self) -> tuple[int, bool]:
        if self._number is None:
            return self._packets, True
        packets = ctypes.c_uint64()
        over = self._engine.call("capture_state", self._number, ctypes.byref(packets))
        return packets.value, bool(over)

    def close(self) -> int:
        """Finish the file and return how many packets it holds; raise UserError if it could not be written.

        May be repeated.
        """
        if self._number is not None:
            packets = ctypes.c_uint64()
            code = self._engine.call("capture_close", self._number, ctypes.byref(packets))
            self._number = None
            self._packets = packets.value
            if code < 0:
                raise UserError(f"the capture {self.file} is not complete: {os.strerror(-code)}")
        return self._packets


def _begun(file: Path, header: bytes) -> int:
    """Return a descriptor of a new file that begins with these bytes. Raises UserError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            while header:
                header = header[os.write(descriptor, header) :]
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        raise UserError(f"cannot write the capture {file}: {error.strerror}") from None
    return descriptor


def of_ports(ports: Iterable[tuple[int, int, Direction]]) -> CaptureInterface:
    """Return what leaves ports, when that begins, and what comes to them, when they have it."""
    taps = tuple(Tap(device_id, port, way, way == "in", way == "out") for device_id, port, way in ports)
    return CaptureInterface("", "", taps)
