"""--use-files: packets from classic pcap files in place of interfaces."""

from __future__ import annotations

import heapq
import logging
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.switch.simple_switch.options import SwitchOptions

# ---- Frames of a pcap file, as they come in ----


# Units per second, by magic number.
_MAGICS = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}
_FILE_HEADER_BYTES = 24
_FRAME_HEADER_BYTES = 16
_MAX_FRAME_BYTES = 1 << 18
"""What libpcap takes at most (MAXIMUM_SNAPLEN)."""


def read_pcap(stream: BinaryIO) -> Iterator[tuple[float, bytes]]:
    """Yield (seconds, frame) of each record. Raises UserError for a file that is none, or ends in the middle."""
    header = stream.read(_FILE_HEADER_BYTES)
    order = next((order for order in "<>" if _magic(order, header) in _MAGICS), None)
    if order is None:
        raise UserError(f"{stream.name} is not a pcap file")
    units = _MAGICS[_magic(order, header)]
    while header := stream.read(_FRAME_HEADER_BYTES):
        seconds, fraction, length, _ = struct.unpack(order + "4I", header.ljust(_FRAME_HEADER_BYTES, b"\0"))
        if length > _MAX_FRAME_BYTES:
            raise UserError(f"{stream.name} has a packet of {length} bytes: it is damaged")
        frame = stream.read(length)
        if len(header) < _FRAME_HEADER_BYTES or len(frame) < length:
            raise UserError(f"{stream.name} ends in the middle of a packet")
        yield seconds + fraction / units, frame


def _magic(order: str, header: bytes) -> int:
    return int(struct.unpack(order + "I", header[:4].ljust(4, b"\0"))[0])


# ---- Ports that are files ----


_logger = logging.getLogger(__name__)
_END_S = 1.0


class PacketFiles:
    """A context manager. Interface X takes its packets from X_in.pcap, in the order of their times in all files
    together and without pauses; what it sends is in X_out.pcap once the switch is idle.

    Named pipes will do: each packet waits until it is known that no other file has an earlier one, as with BMv2.
    """

    def __init__(self, engine: Engine, options: SwitchOptions, delay_s: int) -> None:
        self._engine = engine
        self._device_id = options.device_id
        self._delay_s = delay_s
        self._inputs: dict[int, Path] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="packet files", daemon=True)

    def add_port(self, port: int, interface: str) -> None:
        """Open the files of a port.

        Raises UserError if the input is not there or the output file cannot be written.
        """
        self._inputs[port] = Path(f"{interface}_in.pcap")
        if not self._inputs[port].exists():
            raise UserError(f"--use-files: there is no {self._inputs[port]}")
        self._engine.add_open_port(self._device_id, port)
        output = Path(f"{interface}_out.pcap")
        self._engine.capture(output, [(self._device_id, port, "out")], nanoseconds=False)

    def __enter__(self) -> PacketFiles:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        # It may wait for a writer of a pipe.
        self._thread.join(_END_S)

    def _run(self) -> None:
        if self._ended.wait(self._delay_s):
            return
        try:
            with ExitStack() as stack:
                # All of them first, in order of ports: so scripts open the other ends of pipes.
                streams = [
                    (port, stack.enter_context(self._inputs[port].open("rb"))) for port in sorted(self._inputs)
                ]
                self._replay(heapq.merge(*(_frames(port, stream) for port, stream in streams)))
        except (UserError, OSError) as error:
            _logger.error("%s", error)

    def _replay(self, frames: Iterator[tuple[float, int, bytes]]) -> None:
        for _, port, frame in frames:
            if self._ended.is_set():
                return
            self._engine.inject(self._device_id, port, frame)
            # What left is in the files; it is not fetched from here.
            self._engine.drain()


def _frames(port: int, stream: BinaryIO) -> Iterator[tuple[float, int, bytes]]:
    for time_s, frame in read_pcap(stream):
        yield time_s, port, frame
