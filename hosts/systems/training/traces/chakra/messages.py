"""Chakra's files of messages: each behind its length as a varint."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile, Record
from gradbed.hosts.systems.training.traces.chakra.schema import Metadata, NodeMessage, attribute_value

GZIP = b"\x1f\x8b"
MOST_VARINT_BYTES = 10
MOST_UNPACKED_BYTES = 1 << 31
BEGINS_METADATA = (b"", b"\x0a", b"\x12")
"""Nothing, or the first byte of its version or of an attribute; a node begins otherwise."""


def read_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(Where it begins, message) of each; BrokenFile where the file is no such sequence."""
    place = 0
    while place < len(data):
        start = place
        length, place = _varint(data, place)
        if place + length > len(data):
            left = len(data) - place
            raise BrokenFile(f"the message at byte {start} is cut short: of {length:,} bytes {left:,} are there")
        yield start, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = 0
    for step in range(MOST_VARINT_BYTES):
        if place + step >= len(data):
            raise BrokenFile(f"it ends inside the length at byte {place}")
        byte = data[place + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise BrokenFile(f"no length is at byte {place}: a varint has at most {MOST_VARINT_BYTES} bytes")


def length_prefix(length: int) -> bytes:
    made = bytearray()
    while length > 0x7F:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    return bytes(made)


def write_messages(file: Path, messages: Iterable[Any]) -> None:
    with file.open("wb") as stream:
        for message in messages:
            data = message.SerializeToString()
            stream.write(length_prefix(len(data)) + data)


def content(file: Path) -> bytes:
    """Of a file, unpacked if it is packed by gzip. BrokenFile; OSError if it cannot be read."""
    data = file.read_bytes()
    if not data.startswith(GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(data, MOST_UNPACKED_BYTES)
    except zlib.error as error:
        raise BrokenFile(f"it cannot be unpacked: {error}") from None
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise BrokenFile("it cannot be unpacked: it is cut short, or has more than 2 GiB")
    return unpacked


def read_records(data: bytes, known: dict[bytes, Record]) -> Iterator[Record]:
    """The nodes of a file. known: messages that were read before, which ranks often have alike; more are added."""
    messages = read_messages(data)
    first = next(messages, None)
    if first is None:
        raise BrokenFile("it is empty")
    if first[1][:1] not in BEGINS_METADATA:
        raise BrokenFile("it begins without metadata: traces of Chakra before its schema 0.0.4 (2023) are not read")
    _parsed(Metadata, *first, "the file's metadata")
    for start, message in messages:
        if message not in known:
            known[message] = _record(_parsed(NodeMessage, start, message, "a node"))
        yield known[message]


def _parsed(kind: Any, start: int, message: bytes, what: str) -> Any:
    parsed = kind()
    try:
        parsed.ParseFromString(message)
    except DecodeError as error:
        reason = str(error).partition(":")[0]
        raise BrokenFile(f"the message at byte {start} is not {what} ({reason})") from None
    return parsed


def _record(node: Any) -> Record:
    return Record(
        number=node.id,
        name=node.name,
        type=node.type,
        control=tuple(node.ctrl_deps),
        data=tuple(node.data_deps),
        duration_us=node.duration_micros,
        attributes={attribute.name: attribute_value(attribute) for attribute in node.attr},
        values=node.inputs.values if node.HasField("inputs") else "",
    )
