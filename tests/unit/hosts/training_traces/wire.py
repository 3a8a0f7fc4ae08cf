"""Chakra's files byte by byte, after the schema in its repository; nothing of the reader's is used."""

from __future__ import annotations

import struct

METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = b""
    while value > 127:
        made += bytes([value % 128 + 128])
        value //= 128
    return made + bytes([value])


def message(content: bytes) -> bytes:
    """Behind its length."""
    return varint(len(content)) + content


def field(number: int, content: bytes) -> bytes:
    return varint(number * 8 + 2) + message(content)


def attribute(name: str, value: object) -> bytes:
    """By its type: bool 27, int64 9, double 3, string 29, a list of bool 28."""
    head = field(1, name.encode())
    if isinstance(value, bool):
        return head + varint(27 * 8) + varint(value)
    if isinstance(value, int):
        return head + varint(9 * 8) + varint(value)
    if isinstance(value, float):
        return head + varint(3 * 8 + 1) + struct.pack("<d", value)
    if isinstance(value, list):
        return head + field(28, field(1, bytes(value)))
    return head + field(29, str(value).encode())


def node(
    number: int,
    kind: int,
    name: str = "node",
    data: tuple[int, ...] = (),
    control: tuple[int, ...] = (),
    duration_us: int = 0,
    values: str = "",
    **attributes: object,
) -> bytes:
    made = varint(8) + varint(number) + field(2, name.encode()) + varint(3 * 8) + varint(kind)
    made += field(4, b"".join(map(varint, control))) if control else b""
    made += b"".join(varint(5 * 8) + varint(each) for each in data)  # not packed, which is as good
    made += varint(7 * 8) + varint(duration_us) if duration_us else b""
    made += field(8, field(1, values.encode())) if values else b""
    return made + b"".join(field(10, attribute(key, value)) for key, value in attributes.items())


def file_of(*nodes: bytes) -> bytes:
    return b"".join(map(message, [field(1, b"0.0.4"), *nodes]))
