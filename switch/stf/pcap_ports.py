"""BMv2's ports as files (`--use-files`): a named pipe of pcap records into each port, a pcap file out of each.

Once BMv2 has handled a packet it waits for the next one of the same port before it looks at any other port, and at
the beginning it waits for the first one of every port; then it takes the one with the earliest time. So all packets
must be known beforehand, and packet n is let go by writing (or ending) what comes after packet n - 1 in its pipe.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from gradbed.common.closing import Closing
from gradbed.switch.stf.statements import Packet

_MAGIC, _ETHERNET, _SNAP_LENGTH = 0xA1B2C3D4, 1, 65535
_FILE_HEADER = struct.Struct("=IHHiIII")
_RECORD_HEADER = struct.Struct("=IIII")
_POLL_S = 0.01


class PcapPorts(Closing):
    """folder: where the files are; BMv2 must run there. Interface names are p0, p1, ..."""

    def __init__(self, folder: Path, ports: Sequence[int], packets: Sequence[Packet]) -> None:
        self._folder = folder
        self._ports = sorted(ports)
        self._order = deque(packet.port for packet in packets)
        self._waiting = {
            port: deque(
                _RECORD_HEADER.pack(number, 0, len(p.frame), len(p.frame)) + p.frame
                for number, p in enumerate(packets)
                if p.port == port
            )
            for port in self._ports
        }
        self._pipes: dict[int, int] = {}
        self._read = dict.fromkeys(self._ports, _FILE_HEADER.size)
        self._last: int | None = None
        try:
            for port in self._ports:
                path = self._path(port, "in")
                os.mkfifo(path)
                # Opened to read as well, so that it does not wait for BMv2.
                self._pipes[port] = os.open(path, os.O_RDWR)
                os.write(self._pipes[port], _FILE_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAP_LENGTH, _ETHERNET))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Nothing more comes in by any port."""
        for port in list(self._pipes):
            self._end(port)

    @property
    def arguments(self) -> list[str]:
        """For simple_switch's command line."""
        interfaces = [word for port in self._ports for word in ("-i", f"{port}@p{port}")]
        return ["--use-files", "0", *interfaces]

    def release_next(self) -> None:
        """Let the next packet in."""
        for port in self._ports if self._last is None else [self._last]:
            if self._waiting[port]:
                os.write(self._pipes[port], self._waiting[port].popleft())
            else:
                self._end(port)
        self._last = self._order.popleft()

    def collect(self, quiet_s: float, longest_s: float, is_busy: Callable[[], bool]) -> list[tuple[int, bytes]]:
        """What comes out until nothing has come for `quiet_s` while the switch was not busy, or for `longest_s`."""
        frames: list[tuple[int, bytes]] = []
        now_s = last_s = quiet_since_s = time.monotonic()
        while now_s - quiet_since_s < quiet_s and now_s - last_s < longest_s:
            new = [(port, frame) for port in self._ports for frame in self._new_frames(port)]
            frames += new
            now_s = time.monotonic()
            if new:
                last_s = now_s
            if new or is_busy():
                quiet_since_s = now_s
            time.sleep(_POLL_S)
        return frames

    def _new_frames(self, port: int) -> list[bytes]:
        frames = []
        with contextlib.suppress(FileNotFoundError), self._path(port, "out").open("rb") as file:
            file.seek(self._read[port])
            while len(header := file.read(_RECORD_HEADER.size)) == _RECORD_HEADER.size:
                length = _RECORD_HEADER.unpack(header)[2]
                frame = file.read(length)
                if len(frame) < length:
                    break
                frames.append(frame)
                self._read[port] += len(header) + length
        return frames

    def _end(self, port: int) -> None:
        pipe = self._pipes.pop(port, None)
        if pipe is not None:
            os.close(pipe)

    def _path(self, port: int, direction: str) -> Path:
        return self._folder / f"p{port}_{direction}.pcap"
