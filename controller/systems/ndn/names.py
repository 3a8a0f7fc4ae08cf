"""Names as p4src/include/ndn/names.p4 sees them: 64 bits for each prefix."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from gradbed.common.errors import UserError
from gradbed.formats.ndn import MOST_COMPONENT_BYTES, MOST_COMPONENTS, job_component
from gradbed.formats.tlv import generic

_CRC16_POLYNOMIAL = 0xA001  # 0x8005 mirrored (CRC-16/ARC)


def components(uri: str) -> tuple[bytes, ...]:
    """The generic components of "/training/h1", percent-decoded (NDN Packet Format, "NDN URI Scheme"). UserError if a
    router cannot hold the name."""
    parts = tuple(unquote_to_bytes(part) for part in uri.strip("/").split("/"))
    if not uri.startswith("/") or not all(parts):
        raise UserError(f"{uri!r} is not a name such as /training/h1")
    if len(parts) > MOST_COMPONENTS or max(map(len, parts)) > MOST_COMPONENT_BYTES:
        raise UserError(
            f"the name {uri} is too long: routers take {MOST_COMPONENTS} components of {MOST_COMPONENT_BYTES} bytes"
        )
    return parts


def job_name(uri: str, job: int) -> str:
    """The name that a job gets in place of "/training/h1": "/training-7/h1"."""
    first, slash, rest = uri.lstrip("/").partition("/")
    return f"/{job_component(first, job)}{slash}{rest}"


def name_id(parts: Sequence[bytes]) -> int:
    """The identity of a name of generic components."""
    identity = 0
    for part in parts:
        data = identity.to_bytes(8, "big") + generic(part)
        identity = zlib.crc32(data) << 32 | _crc16(data) << 16 | _internet_checksum(data)
    return identity


def _crc16(data: bytes) -> int:
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (_CRC16_POLYNOMIAL if rest & 1 else 0)
    return rest


def _internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
