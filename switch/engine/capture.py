"""Captures: what passes ports of the data plane, as pcap files."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from common.closing import Closing
from common.errors import UserError
from switch.engine.handle import EngineHandle
from switch.engine.statistics import Direction


class Capture(Closing):
    """Made by Engine.capture; writes until it is closed, or the engine is. A context manager.

    "out" frames are recorded when the port begins to send them, also those that the link then loses; "in" frames when
    the switch gets them. Times are those of the wall clock; with a manual clock, those of that clock.
    Links in memory can be captured like interfaces, and so can the CPU port. A port's direction can be in one capture
    at a time. The file is up to date whenever the data plane is idle.
    """

    def __init__(
        self, engine: EngineHandle, file: Path, ports: Iterable[tuple[int, int, Direction]], nanoseconds: bool
    ) -> None:
        self.file = file
        self._engine = engine
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"cannot write the capture {file}: {error.strerror}") from None
        number = engine.call("capture_open", descriptor, nanoseconds)
        if number < 0:
            raise MemoryError("out of memory for a capture")
        self._number: int | None = number
        self._packets = 0
        for device_id, port, direction in ports:
            code = engine.call("capture_port", number, device_id, port, direction == "out")
            if code < 0:
                self.close()
                reason = "is being captured already" if code == -errno.EEXIST else "does not exist"
                raise UserError(f"cannot capture {direction!r} of port {port} of switch {device_id}: it {reason}")

    def close(self) -> int:
        """Finish the file; how many packets it holds. UserError if it could not be written. May be repeated."""
        if self._number is not None:
            packets = ctypes.c_uint64()
            code = self._engine.call("capture_close", self._number, ctypes.byref(packets))
            self._number = None
            self._packets = packets.value
            if code < 0:
                raise UserError(f"the capture {self.file} is not complete: {os.strerror(-code)}")
        return self._packets
