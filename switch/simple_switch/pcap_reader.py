"""Frames of a classic pcap file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from switch.errors import UserError

# Units per second, by magic number.
_MAGICS = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}


def read_pcap(path: Path) -> Iterator[tuple[float, bytes]]:
    """(seconds, frame) of each record. Raises UserError for a file that is none, or ends in the middle."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    for order in "<>":
        if len(data) >= 24 and struct.unpack_from(order + "I", data)[0] in _MAGICS:
            break
    else:
        raise UserError(f"{path} is not a pcap file")
    units = _MAGICS[struct.unpack_from(order + "I", data)[0]]
    offset = 24
    while offset < len(data):
        if offset + 16 > len(data):
            raise UserError(f"{path} ends in the middle of a packet")
        seconds, fraction, length, _ = struct.unpack_from(order + "4I", data, offset)
        offset += 16
        if offset + length > len(data):
            raise UserError(f"{path} ends in the middle of a packet")
        yield seconds + fraction / units, data[offset : offset + length]
        offset += length
