"""Type-length-value elements and names of NDN (Packet Format 0.3; naming conventions, revision 3), in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

INTEREST, DATA, NAME = 0x05, 0x06, 0x07
GENERIC, SEGMENT, VERSION = 0x08, 0x32, 0x36
CAN_BE_PREFIX, MUST_BE_FRESH, NONCE, LIFETIME, HOP_LIMIT = 0x21, 0x12, 0x0A, 0x0C, 0x22
META_INFO, CONTENT = 0x14, 0x15
LP_PACKET = 0x64

NULL_SIGNATURE = bytes.fromhex("16031b01c81700")
"""SignatureInfo with SignatureType 200 and a SignatureValue of no bytes: routers give Data a name that its publisher
did not sign, and do not sign what they say themselves."""

Component = bytes
"""With its type and length."""
Name = tuple[Component, ...]

_TWO, _FOUR, _EIGHT = 253, 254, 255


class MalformedError(ValueError):
    """Raised for bytes that are no TLV, or not one of the wanted form."""


def number(value: int) -> bytes:
    """Encode a type or length (VAR-NUMBER) in its shortest form."""
    if value < _TWO:
        return bytes((value,))
    if value <= 0xFFFF:
        return bytes((_TWO,)) + value.to_bytes(2, "big")
    return bytes((_FOUR,)) + value.to_bytes(4, "big")


def tlv(kind: int, value: bytes) -> bytes:
    """Encode a TLV of a type and a value."""
    return number(kind) + number(len(value)) + value


def integer(value: int) -> bytes:
    """Encode a NonNegativeInteger in its shortest form."""
    for size in (1, 2, 4, 8):
        if value < 1 << (8 * size):
            return value.to_bytes(size, "big")
    raise ValueError(f"{value} does not fit 64 bits")


def generic(value: str | bytes) -> Component:
    """Return a GenericNameComponent."""
    return tlv(GENERIC, value.encode() if isinstance(value, str) else value)


def numbered(kind: int, value: int) -> Component:
    """Return a component that is a number, such as a version or a segment."""
    return tlv(kind, integer(value))


def component_number(component: Component, kind: int) -> int:
    """Return the number of a component from `numbered`; MalformedError for anything else."""
    if len(component) < 3 or component[0] != kind or len(component) - 2 not in (1, 2, 4, 8):
        raise MalformedError(f"not a component of type {kind}")
    return int.from_bytes(component[2:], "big")


def name_tlv(name: Sequence[Component]) -> bytes:
    """Encode a name of these components."""
    return tlv(NAME, b"".join(name))


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a type or length and the offset behind it; MalformedError if it is cut or not the shortest form."""
    if at >= len(data):
        raise MalformedError("ends in the middle of a TLV")
    first = data[at]
    if first < _TWO:
        return first, at + 1
    size = 2 << (first - _TWO)
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    if at + 1 + size > len(data) or value < (_TWO, 1 << 16, 1 << 32)[first - _TWO]:
        raise MalformedError("a number is cut off, or not in its shortest form")
    return value, at + 1 + size


def read_tlv(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the type, and where the value begins and ends, of the TLV at `at` within what ends at `end`."""
    kind, at = read_number(data, at)
    length, at = read_number(data, at)
    if at + length > end:
        raise MalformedError("a TLV is longer than the one that it is in")
    return kind, at, at + length


def elements(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the TLVs from `at` to `end`, as `read_tlv` returns them."""
    while at < end:
        kind, begin, at = read_tlv(data, at, end)
        yield kind, begin, at


def read_name(data: bytes, at: int, end: int) -> Name:
    """Read the components between `at` and `end`."""
    found = []
    while at < end:
        _, _, after = read_tlv(data, at, end)
        found.append(data[at:after])
        at = after
    return tuple(found)
