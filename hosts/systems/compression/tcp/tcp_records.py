"""Parts on a stream of the kernel's TCP: each behind two bytes that tell how long it is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.compression import PART_VERSION
from gradbed.hosts.protocols.datagram_frames import Frames
from gradbed.hosts.systems.compression.packets.frames import HEADER_BYTES, RECORD_BYTES, record_type

LENGTH_BYTES = 2


def records(frames: Iterable[NDArray[np.uint8]]) -> bytes:
    """What is in whole frames behind UDP, one record after the other."""
    parts = [frame[HEADER_BYTES - RECORD_BYTES :].tobytes() for frame in frames]
    return b"".join(len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts)


class RecordReader:
    """Puts records together again."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def take(self, data: bytes) -> list[Frames]:
        """The records that are complete now, each as an array of one. ValueError for what is none."""
        self._waiting += data
        found, start = [], 0
        while len(self._waiting) - start >= LENGTH_BYTES:
            length = int.from_bytes(self._waiting[start : start + LENGTH_BYTES], "big")
            end = start + LENGTH_BYTES + length
            if length < RECORD_BYTES:
                raise ValueError(f"a record of {length} bytes")
            if end > len(self._waiting):
                break
            record = np.frombuffer(bytes(self._waiting[end - length : end]), record_type(length - RECORD_BYTES))
            if record["version"][0] != PART_VERSION:
                raise ValueError(f"a record of version {record['version'][0]}")
            found.append(record)
            start = end
        del self._waiting[:start]
        return found
