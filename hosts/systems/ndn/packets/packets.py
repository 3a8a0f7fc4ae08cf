"""Interests and Data as agents make and take them: whole Ethernet frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import ETHER_TYPE, HOP_LIMIT, MULTICAST_MAC
from gradbed.formats.tlv import Component, MalformedError, Name

EMPTY_BODY = tlv.tlv(tlv.CONTENT, b"") + tlv.NULL_SIGNATURE


@dataclass(frozen=True)
class Interest:
    """lifetime_ms, nonce: None where the packet has none."""

    name: Name
    nonce: int | None
    lifetime_ms: int | None = None
    must_be_fresh: bool = False


@dataclass(frozen=True)
class Data:
    """content: of the Content TLV, without type and length; empty where there is none."""

    name: Name
    content: bytes


def ethernet(src_mac: bytes) -> bytes:
    return MULTICAST_MAC + src_mac + ETHER_TYPE.to_bytes(2, "big")


def interest_frame(
    header: bytes, name: Sequence[Component], nonce: int, lifetime_ms: int, must_be_fresh: bool = False
) -> bytes:
    """header: of Ethernet."""
    fresh = tlv.tlv(tlv.MUST_BE_FRESH, b"") if must_be_fresh else b""
    return header + tlv.tlv(
        tlv.INTEREST,
        tlv.name_tlv(name)
        + fresh
        + tlv.tlv(tlv.NONCE, nonce.to_bytes(4, "big"))
        + tlv.tlv(tlv.LIFETIME, tlv.integer(lifetime_ms))
        + tlv.tlv(tlv.HOP_LIMIT, bytes((HOP_LIMIT,))),
    )


def data_frame(header: bytes, name: Sequence[Component], body: bytes = EMPTY_BODY) -> bytes:
    """header: of Ethernet. body: all TLVs after the name."""
    return header + tlv.tlv(tlv.DATA, tlv.name_tlv(name) + body)


def read_packet(frame: bytes) -> Interest | Data:
    """Decode a frame; MalformedError for what is neither."""
    kind, at, end = tlv.read_tlv(frame, ETHERNET_BYTES, len(frame))
    if kind not in (tlv.INTEREST, tlv.DATA):
        raise MalformedError("neither Interest nor Data")
    first, begin, after = tlv.read_tlv(frame, at, end)
    if first != tlv.NAME:
        raise MalformedError("does not begin with a name")
    name = tlv.read_name(frame, begin, after)
    rest = {part: frame[begin:stop] for part, begin, stop in tlv.elements(frame, after, end)}
    if kind == tlv.DATA:
        return Data(name, rest.get(tlv.CONTENT, b""))
    nonce, lifetime = rest.get(tlv.NONCE), rest.get(tlv.LIFETIME)
    return Interest(
        name,
        None if nonce is None else int.from_bytes(nonce, "big"),
        None if lifetime is None else int.from_bytes(lifetime, "big"),
        tlv.MUST_BE_FRESH in rest,
    )
