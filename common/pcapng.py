"""Files of pcapng (draft-ietf-opsawg-pcapng): what stands before the packets, and one packet."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

INBOUND, OUTBOUND = 1, 2
"""Values of epb_flags: which way a packet goes, as seen by who owns the interface."""

_SECTION_HEADER, _INTERFACE_DESCRIPTION, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER, _ETHERNET = 0x1A2B3C4D, 1
_UNKNOWN_LENGTH, _NO_LIMIT = 2**64 - 1, 0
_USER_APPLICATION, _NAME, _DESCRIPTION, _TIME_RESOLUTION, _FLAGS = 4, 2, 3, 9, 2
_NANOSECONDS = 9


class Interface(NamedTuple):
    """An interface of a capture; packets refer to it by number."""

    name: str
    description: str


def file_header(interfaces: Iterable[Interface]) -> bytes:
    """Return the section and its interfaces, all Ethernet, with times in nanoseconds."""
    section = struct.pack("=IHHQ", _BYTE_ORDER, 1, 0, _UNKNOWN_LENGTH)
    blocks = [_block(_SECTION_HEADER, section + _options([(_USER_APPLICATION, b"gradbed")]))]
    for each in interfaces:
        options = [
            (_NAME, each.name.encode()),
            (_DESCRIPTION, each.description.encode()),
            (_TIME_RESOLUTION, bytes([_NANOSECONDS])),
        ]
        blocks.append(
            _block(_INTERFACE_DESCRIPTION, struct.pack("=HHI", _ETHERNET, 0, _NO_LIMIT) + _options(options))
        )
    return b"".join(blocks)


def packet_block(interface: int, time_ns: int, frame: bytes, flags: int) -> bytes:
    """Return the block of a whole frame, seen at a time since 1970; flags: INBOUND or OUTBOUND."""
    head = struct.pack("=IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), len(frame))
    return _block(_ENHANCED_PACKET, head + _padded(frame) + _options([(_FLAGS, struct.pack("=I", flags))]))


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


def _options(options: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("=HH", code, len(value)) + _padded(value) for code, value in options) + bytes(4)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
