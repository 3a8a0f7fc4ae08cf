"""pcapng files, read as its draft says (draft-ietf-opsawg-pcapng-02) and without any of the project's code."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple


class Seen(NamedTuple):
    """A packet. flow: "in" or "out", as seen from the interface."""

    interface: str
    time_ns: int
    flow: str
    comment: str
    frame: bytes


def read_pcapng(path: Path) -> list[Seen]:
    """AssertionError for what is no whole file of one section, with Ethernet frames and times in nanoseconds."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0x0A0D0D0A
    order = {0x1A2B3C4D: "<", 0x4D3C2B1A: ">"}[struct.unpack_from("<I", data, 8)[0]]
    interfaces: list[str] = []
    seen = []
    place = 0
    while place < len(data):
        kind, length = struct.unpack_from(order + "II", data, place)
        assert length % 4 == 0 and struct.unpack_from(order + "I", data, place + length - 4)[0] == length
        body = data[place + 8 : place + length - 4]
        if kind == 1:
            link_type, _, _ = struct.unpack_from(order + "HHI", body)
            options = _options(order, body[8:])
            assert link_type == 1 and options[9] == b"\x09"
            interfaces.append(options[2].decode())
        elif kind == 6:
            number, high, low, captured, whole = struct.unpack_from(order + "5I", body)
            assert captured == whole
            options = _options(order, body[20 + (captured + 3) // 4 * 4 :])
            flow = {1: "in", 2: "out"}[struct.unpack(order + "I", options[2])[0]]
            comment = options.get(1, b"").decode()
            seen.append(Seen(interfaces[number], high << 32 | low, flow, comment, body[20 : 20 + captured]))
        else:
            assert kind == 0x0A0D0D0A
        place += length
    assert place == len(data)
    return seen


def _options(order: str, data: bytes) -> dict[int, bytes]:
    found = {}
    place = 0
    while True:
        code, length = struct.unpack_from(order + "HH", data, place)
        if code == 0:
            assert length == 0 and place + 4 == len(data)
            return found
        found[code] = data[place + 4 : place + 4 + length]
        place += 4 + (length + 3) // 4 * 4
