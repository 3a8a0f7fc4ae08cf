"""Frames of a classic pcap file, as they come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from gradbed.common.errors import UserError

# Units per second, by magic number.
_MAGICS = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}
_FILE_HEADER_BYTES = 24
_FRAME_HEADER_BYTES = 16
_MAX_FRAME_BYTES = 1 << 18
"""What libpcap takes at most (MAXIMUM_SNAPLEN)."""


def read_pcap(stream: BinaryIO) -> Iterator[tuple[float, bytes]]:
    """(seconds, frame) of each record. Raises UserError for a file that is none, or ends in the middle."""
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
