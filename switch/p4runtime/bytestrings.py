"""Integers as P4Runtime byte strings: big-endian, shortest form when sent, any length when received.

P4Runtime specification 1.4, section "Bytestrings".
"""

from __future__ import annotations

from gradbed.switch.p4runtime.status import invalid, out_of_range


def decode(data: bytes, width_bits: int) -> int:
    """The value of a bit<width_bits>.

    INVALID_ARGUMENT for an empty string, OUT_OF_RANGE for a value that is too wide.
    """
    if not data:
        raise invalid("a value is an empty byte string: zero is the byte 00")
    value = int.from_bytes(data, "big")
    if value >> width_bits:
        raise out_of_range(f"{value:#x} does not fit in {width_bits} bits")
    return value


def encode(value: int) -> bytes:
    """The canonical string of a non-negative integer."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode_signed(data: bytes, width_bits: int) -> int:
    """The value of an int<width_bits>.

    INVALID_ARGUMENT for an empty string, OUT_OF_RANGE for a value that is too wide.
    """
    if not data:
        raise invalid("a value is an empty byte string: zero is the byte 00")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width_bits - 1)) <= value < 1 << (width_bits - 1):
        raise out_of_range(f"{value} does not fit in int<{width_bits}>")
    return value


def encode_signed(value: int) -> bytes:
    """The canonical string of an integer in two's complement."""
    magnitude = value if value >= 0 else ~value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
