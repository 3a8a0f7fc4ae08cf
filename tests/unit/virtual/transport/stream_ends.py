"""Ends of streams of fragments on a line of hosts: templates, offsets, and frames as a peer of the test's own makes
and reads them."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from gradbed.switch.virtual import HostInterface
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import Line

STREAMED, STREAM_FAILED = 3, 4
FRAGMENTS, REPLIES = 7000, 7001
"""UDP ports."""
UDP_PORT_AT, HEADER_AT = 36, 42
HEADER = struct.Struct(">IQIBx")
"""Number, bits, magnitude, flags."""
TEMPLATE_BYTES = HEADER_AT + HEADER.size
AGAIN = 0x40
PAYLOAD_BYTES = 64
NO_OFFSET = 2**32 - 1


class Arrived(NamedTuple):
    port: int
    number: int
    bits: int
    magnitude: int
    flags: int
    values: list[int]


def frame(here: int, there: int, port: int, number: int, bits: int, values: Any = (), flags: int = 0) -> bytes:
    """values: the payload's int32."""
    return rf.datagram(here, there, port, HEADER.pack(number, bits, 0, flags) + np.asarray(values, ">i4").tobytes())


def arrived(interface: HostInterface) -> list[Arrived]:
    """What the host has received."""
    rows, lengths = interface.receive()
    found = []
    for row, length in zip(rows, lengths, strict=True):
        data = bytes(row[:length])
        (port,) = struct.unpack_from(">H", data, UDP_PORT_AT)
        values = np.frombuffer(data[TEMPLATE_BYTES:], ">i4").tolist()
        number, bits, magnitude, flags = HEADER.unpack_from(data, HEADER_AT)
        found.append(Arrived(port, number, bits, magnitude, flags, values))
    return found


def send(line: Line, host: int, frames: list[bytes]) -> None:
    for each in frames:
        assert line.interface(host).send(np.frombuffer(each, np.uint8)[None, :].copy()) == 1


def options(role: str, here: int, there: int, **changes: Any) -> dict[str, Any]:
    """Of one end, whose packets have bit `here`, if it is no server."""
    from_source = role == "source"
    bits = changes.pop("bits", 1 << here)
    found = {
        "role": role,
        "templates": [frame(here, there, FRAGMENTS if from_source else REPLIES, 0, bits)],
        "words": [(UDP_PORT_AT, 0xFFFF, REPLIES if from_source else FRAGMENTS)],
        "window": 8,
        "payload_bytes": PAYLOAD_BYTES,
        "reply_payload": 1,
        "everybody": bits,
        "number_offset": HEADER_AT,
        "bits_offset": HEADER_AT + 4,
        "magnitude_offset": HEADER_AT + 12 if from_source else NO_OFFSET,
        "flags_offset": HEADER_AT + 16,
        "again": AGAIN,
        "came_again": AGAIN,
        "direct_after": 0,
        "timeout_ns": 100_000,
        "give_up_after": 1000,
    }
    return {**found, **changes}


def open_end(line: Line, role: str, here: int, there: int, number: int = 1, **changes: Any) -> None:
    line.open(here).open_stream(number, **options(role, here, there, **changes))
