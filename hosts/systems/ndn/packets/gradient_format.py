"""Gradients as Data: frames of a version's fragments, and what is read of them.

Content is the loss (binary64), the scales of up to four tensors (int8 each), flags (16 bits), 16 bits that are zero,
and int32 lanes, all big-endian. Lengths of names vary with the numbers in them, so frames come in batches of one
length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.formats import tlv
from gradbed.formats.tlv import Component
from gradbed.hosts.systems.ndn.packets.packets import data_frame

LAST_VERSION = 1
"""Flag: the publisher makes no further version."""
MOST_SCALES = 4

_HEAD = struct.Struct(">d4bHH")
CONTENT_HEAD_BYTES = _HEAD.size

Frames = NDArray[np.uint8]


@dataclass(frozen=True)
class VersionHead:
    """What every fragment of a version says besides its lanes. scales: exponents of the tensors, none in synchronous
    training, where all peers know them."""

    loss: float = 0.0
    scales: tuple[int, ...] = ()
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
    """All TLVs after the name, for one fragment, shape (lanes,)."""
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
