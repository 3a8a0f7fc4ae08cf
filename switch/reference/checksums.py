"""Checksums and hashes over bits, from their published definitions: RFC 1071, CRC-16/ARC, CRC-32/ISO-HDLC."""

from __future__ import annotations

from collections.abc import Callable


def to_bytes(width: int, number: int) -> bytes:
    """Return bits as bytes, padded with zeros behind the last one."""
    padding = -width % 8
    return (number << padding).to_bytes((width + padding) // 8, "big")


def csum16(data: bytes) -> int:
    """Return the ones' complement of the ones' complement sum of 16-bit words (RFC 1071)."""
    total = 0
    for index in range(0, len(data), 2):
        word = data[index : index + 2]
        total += int.from_bytes(word.ljust(2, b"\0"), "big")
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _reflected(width: int, value: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


def crc(data: bytes, width: int, polynomial: int, initial: int, final: int) -> int:
    """Return a reflected CRC, computed bit by bit: every byte with its lowest bit first."""
    reflected = _reflected(width, polynomial)
    value = initial
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ reflected if value & 1 else value >> 1
    return value ^ final


def crc16(data: bytes) -> int:
    return crc(data, 16, 0x8005, 0, 0)


def crc32(data: bytes) -> int:
    return crc(data, 32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF)


def xor16(data: bytes) -> int:
    value = 0
    for index in range(0, len(data), 2):
        value ^= int.from_bytes(data[index : index + 2].ljust(2, b"\0"), "big")
    return value


def identity(data: bytes) -> int:
    """Return the first eight bytes as a number, as BMv2 does."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc32": crc32,
    "csum16": csum16,
    "identity": identity,
    "xor16": xor16,
}
