"""Interests and Data as agents make and take them, whole Ethernet frames, and gradients as Data.

A gradient's content is the loss (binary64), the scales of up to four tensors (int8 each), flags (16 bits), 16 bits
that are zero, and int32 lanes, all big-endian. Lengths of names vary with the numbers in them, so frames come in
batches of one length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import ETHER_TYPE, HOP_LIMIT, MULTICAST_MAC
from gradbed.formats.tlv import Component, MalformedError, Name

# ---- Interests and Data ----


EMPTY_BODY = tlv.tlv(tlv.CONTENT, b"") + tlv.NULL_SIGNATURE


@dataclass(frozen=True)
class Interest:
    """An Interest (NDN packet specification 0.3)."""

    name: Name
    nonce: int | None
    """Nonce; None where the packet has none."""
    lifetime_ms: int | None = None
    """InterestLifetime; None where the packet has none."""
    must_be_fresh: bool = False


@dataclass(frozen=True)
class Data:
    """A Data packet (NDN packet specification 0.3)."""

    name: Name
    content: bytes
    """Value of the Content TLV; empty where there is none."""


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


# ---- Gradients: frames of a version's fragments, and what is read of them ----


LAST_VERSION = 1
"""Flag: the publisher makes no further version."""
MOST_SCALES = 4

_HEAD = struct.Struct(">d4bHH")
CONTENT_HEAD_BYTES = _HEAD.size

Frames = NDArray[np.uint8]


@dataclass(frozen=True)
class VersionHead:
    """The head of a version, which every fragment has besides its lanes."""

    loss: float = 0.0
    scales: tuple[int, ...] = ()
    """Exponents of the tensors; none in synchronous training, where all peers know them."""
    last: bool = False

    def to_bytes(self) -> bytes:
        scales = (*self.scales, *(0,) * (MOST_SCALES - len(self.scales)))
        return _HEAD.pack(self.loss, *scales, LAST_VERSION if self.last else 0, 0)

    @classmethod
    def from_bytes(cls, data: bytes) -> VersionHead:
        loss, *scales, flags, _ = _HEAD.unpack(data[: _HEAD.size])
        return cls(loss, tuple(scales), bool(flags & LAST_VERSION))


def content_bytes(lanes: int) -> int:
    return CONTENT_HEAD_BYTES + 4 * lanes


def body(head: VersionHead, lanes: NDArray[np.int32]) -> bytes:
    """Return all TLVs after the name, for one fragment, shape (lanes,)."""
    content = head.to_bytes() + lanes.astype(">i4").tobytes()
    return tlv.tlv(tlv.CONTENT, content) + tlv.NULL_SIGNATURE


def fragment_name(prefix: Sequence[Component], version: int, segment: int) -> tuple[Component, ...]:
    return (*prefix, tlv.numbered(tlv.VERSION, version), tlv.numbered(tlv.SEGMENT, segment))


def version_frames(
    header: bytes, prefix: Sequence[Component], version: int, head: VersionHead, fragments: NDArray[np.int32]
) -> Iterator[Frames]:
    """Frames of all fragments, shape (fragments, lanes), in their order, in batches of one length each.

    header: of Ethernet. prefix: the name before the version."""
    begin = 0
    while begin < len(fragments):
        size = len(tlv.integer(begin))
        end = min(len(fragments), 1 << (8 * size))
        rest = body(head, fragments[begin])
        template = data_frame(header, fragment_name(prefix, version, begin), rest)
        frames = np.empty((end - begin, len(template)), np.uint8)
        frames[:] = np.frombuffer(template, np.uint8)
        after_lanes = len(template) - len(tlv.NULL_SIGNATURE)
        before_lanes = after_lanes - 4 * fragments.shape[1]
        frames[:, before_lanes:after_lanes] = fragments[begin:end].astype(">i4").view(np.uint8)
        # The segment's number ends the name.
        after_name = len(template) - len(rest)
        numbers = np.arange(begin, end, dtype=">u8").view(np.uint8).reshape(-1, 8)
        frames[:, after_name - size : after_name] = numbers[:, 8 - size :]
        yield frames
        begin = end
