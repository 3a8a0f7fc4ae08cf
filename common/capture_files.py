"""Read and write capture files.

Read are pcap (draft-ietf-opsawg-pcap), and pcapng (draft-ietf-opsawg-pcapng) with all of its packet blocks and any
number of sections. Written is pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gradbed.common.errors import UserError

ETHERNET = 1
"""Link type."""

MAX_PACKET_BYTES = 1 << 18
"""What libpcap takes at most (MAXIMUM_SNAPLEN)."""

_NS = 1_000_000_000
_MICROSECONDS, _NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
_FILE_HEADER_BYTES, _RECORD_HEADER_BYTES = 24, 16
_HAS_FCS_LENGTH = 1 << 26
"""In the field of the link type; the length, in units of 16 bits, is in its highest four bits."""

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_END_OF_OPTIONS, _TIME_RESOLUTION, _TIME_OFFSET = 0, 9, 14
_GZIP = b"\x1f\x8b"


class Record(NamedTuple):
    """A packet as it was captured. time_ns: since 1970; None where its block has none (simple packet blocks).
    data: as much as was kept of original_bytes."""

    time_ns: int | None
    link_type: int
    data: bytes
    original_bytes: int


@dataclass(frozen=True)
class CaptureFile:
    """The packets of a capture file."""

    records: list[Record]
    is_cut: bool
    """Whether the file ends in the middle of a packet, which is not among the records."""


def read_capture_file(path: Path) -> CaptureFile:
    """Raises UserError, with the packet's number, for what is no capture file or is damaged."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    if data.startswith(_GZIP):
        raise UserError(f"{path} is compressed: unpack it first (gunzip)")
    found = _records(path, data)
    records: list[Record] = []
    is_cut = False
    try:
        for record in found:
            records.append(record)
    except _CutShort:
        is_cut = True
    except _Damaged as error:
        raise UserError(f"{path} is damaged at packet {len(records) + 1}: {error}") from None
    if not records:
        raise UserError(f"{path} has no packets")
    return CaptureFile(records, is_cut)


class _CutShort(Exception):
    """The file ends where more has to follow."""


class _Damaged(Exception):
    """A file whose contents contradict themselves."""


def _records(path: Path, data: bytes) -> Iterator[Record]:
    for order in "<>":
        magic = struct.unpack(order + "I", data[:4].ljust(4, b"\0"))[0]
        if magic in (_MICROSECONDS, _NANOSECONDS) and len(data) >= _FILE_HEADER_BYTES:
            return _pcap_records(data, order, 1000 if magic == _MICROSECONDS else 1)
    if data.startswith(struct.pack("<I", _SECTION)):
        return _pcapng_records(data)
    raise UserError(f"{path} is no capture file (pcap or pcapng)")


def _checked(captured_bytes: int, original_bytes: int) -> None:
    if max(captured_bytes, original_bytes) > MAX_PACKET_BYTES:
        raise _Damaged(f"it has {max(captured_bytes, original_bytes)} bytes")
    if captured_bytes > original_bytes:
        raise _Damaged(f"{captured_bytes} bytes were captured of {original_bytes}")


# ---- pcap ----


def _pcap_records(data: bytes, order: str, unit_ns: int) -> Iterator[Record]:
    network = struct.unpack_from(order + "I", data, 20)[0]
    fcs_bytes = 2 * (network >> 28) if network & _HAS_FCS_LENGTH else 0
    header = struct.Struct(order + "4I")
    place = _FILE_HEADER_BYTES
    while place < len(data):
        if len(data) - place < _RECORD_HEADER_BYTES:
            raise _CutShort
        seconds, fraction, captured_bytes, original_bytes = header.unpack_from(data, place)
        _checked(captured_bytes, original_bytes)
        place += _RECORD_HEADER_BYTES
        if len(data) - place < captured_bytes:
            raise _CutShort
        whole_bytes = max(0, original_bytes - fcs_bytes)
        packet = data[place : place + min(captured_bytes, whole_bytes)]
        yield Record(seconds * _NS + fraction * unit_ns, network & 0xFFFF, packet, whole_bytes)
        place += captured_bytes


# ---- pcapng ----


class _Interface(NamedTuple):
    """ticks_per_s: of its time stamps, a power of 2 or 10."""

    link_type: int
    snap_bytes: int
    ticks_per_s: int
    offset_s: int


def _pcapng_records(data: bytes) -> Iterator[Record]:
    order = "<"
    interfaces: list[_Interface] = []
    place = 0
    while place < len(data):
        if len(data) - place < 12:
            raise _CutShort
        if data[place : place + 4] == struct.pack("<I", _SECTION):
            order = _byte_order(data, place)
            interfaces = []
        kind, length = struct.unpack_from(order + "II", data, place)
        if length < 12 or length % 4:
            raise _Damaged(f"a block at byte {place} says that it has {length} bytes")
        if len(data) - place < length:
            raise _CutShort
        if struct.unpack_from(order + "I", data, place + length - 4)[0] != length:
            raise _Damaged(f"a block at byte {place} ends with another length than it begins with")
        body = data[place + 8 : place + length - 4]
        try:
            if kind == _INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind == _SIMPLE_PACKET:
                yield _simple_packet(order, body, interfaces)
            elif kind in (_ENHANCED_PACKET, _OLD_PACKET):
                yield _timed_packet(order, kind, body, interfaces)
        except struct.error:
            raise _Damaged(f"a block at byte {place} is too short for what it holds") from None
        place += length


def _byte_order(data: bytes, place: int) -> str:
    for order in "<>":
        if data[place + 8 : place + 12] == struct.pack(order + "I", _BYTE_ORDER_MAGIC):
            return order
    raise _Damaged(f"the section at byte {place} has no byte order")


def _interface(order: str, body: bytes) -> _Interface:
    link_type, _, snap_bytes = struct.unpack_from(order + "HHI", body)
    ticks_per_s, offset_s = 1_000_000, 0
    for code, value in _options(order, body[8:]):
        if code == _TIME_RESOLUTION and len(value) == 1:
            exponent = value[0] & 0x7F
            ticks_per_s = 2**exponent if value[0] & 0x80 else 10**exponent
        elif code == _TIME_OFFSET and len(value) == 8:
            offset_s = struct.unpack(order + "q", value)[0]
    return _Interface(link_type, snap_bytes, ticks_per_s, offset_s)


def _options(order: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while len(data) - place >= 4:
        code, length = struct.unpack_from(order + "HH", data, place)
        if code == _END_OF_OPTIONS:
            return
        yield code, data[place + 4 : place + 4 + length]
        place += 4 + (length + 3) // 4 * 4


def _seen_by(interfaces: list[_Interface], number: int) -> _Interface:
    if number >= len(interfaces):
        raise _Damaged(f"no interface {number} is described before it")
    return interfaces[number]


def _simple_packet(order: str, body: bytes, interfaces: list[_Interface]) -> Record:
    """Read a packet of the section's first interface, which has no time."""
    interface = _seen_by(interfaces, 0)
    (original_bytes,) = struct.unpack_from(order + "I", body)
    captured_bytes = min(original_bytes, interface.snap_bytes or original_bytes)
    _checked(captured_bytes, original_bytes)
    return Record(None, interface.link_type, _content(body, 4, captured_bytes), original_bytes)


def _timed_packet(order: str, kind: int, body: bytes, interfaces: list[_Interface]) -> Record:
    form = "IIIII" if kind == _ENHANCED_PACKET else "HHIIII"
    number, *_, high, low, captured_bytes, original_bytes = struct.unpack_from(order + form, body)
    interface = _seen_by(interfaces, number)
    _checked(captured_bytes, original_bytes)
    time_ns = (high << 32 | low) * _NS // interface.ticks_per_s + interface.offset_s * _NS
    return Record(time_ns, interface.link_type, _content(body, 20, captured_bytes), original_bytes)


def _content(body: bytes, begin: int, length: int) -> bytes:
    if len(body) - begin < length:
        raise _Damaged(f"its block holds {len(body) - begin} of {length} bytes")
    return body[begin : begin + length]


# ---- Writing pcapng ----

INBOUND, OUTBOUND = 1, 2
"""Values of epb_flags: the direction of a packet, as seen by the owner of the interface."""

_ETHERNET = 1  # LINKTYPE_ETHERNET
_UNKNOWN_LENGTH, _NO_LIMIT = 2**64 - 1, 0
_USER_APPLICATION, _NAME, _DESCRIPTION, _FLAGS = 4, 2, 3, 2
_NANOSECOND_EXPONENT = 9


class PcapngInterface(NamedTuple):
    """An interface of a capture; packets refer to it by number."""

    name: str
    description: str


def file_header(interfaces: Iterable[PcapngInterface]) -> bytes:
    """Return the section and its interfaces, all Ethernet, with times in nanoseconds."""
    section = struct.pack("=IHHQ", _BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    blocks = [_block(_SECTION, section + _encoded_options([(_USER_APPLICATION, b"gradbed")]))]
    for each in interfaces:
        options = [
            (_NAME, each.name.encode()),
            (_DESCRIPTION, each.description.encode()),
            (_TIME_RESOLUTION, bytes([_NANOSECOND_EXPONENT])),
        ]
        blocks.append(_block(_INTERFACE, struct.pack("=HHI", _ETHERNET, 0, _NO_LIMIT) + _encoded_options(options)))
    return b"".join(blocks)


def packet_block(interface: int, time_ns: int, frame: bytes, flags: int) -> bytes:
    """Return the block of a whole frame, seen at a time since 1970; flags: INBOUND or OUTBOUND."""
    head = struct.pack("=IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), len(frame))
    return _block(_ENHANCED_PACKET, head + _padded(frame) + _encoded_options([(_FLAGS, struct.pack("=I", flags))]))


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


def _encoded_options(options: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("=HH", code, len(value)) + _padded(value) for code, value in options) + bytes(4)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
