"""Whole frames in batches, as NumPy columns: packed and checked by the table of their header."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradbed.formats.addresses import mac_bytes
from gradbed.formats.datagram import CE, ECN_MASK, ETHERNET, ETHERNET_BYTES, FRAGMENT_MASK, IPV4, IPV4_BYTES, UDP
from gradbed.formats.header import Header

# ---- UDP datagrams ----


Frames = NDArray[np.void]
"""Structured array whose dtype begins with Ethernet, IPv4 and UDP (formats/datagram.py), shape (frames,)."""

FrameType = np.dtype[np.void]


def frame_type(header: Header, *rest: Any) -> FrameType:
    """The whole Ethernet frame, packed, big-endian; `itemsize` is its length in bytes. rest: columns behind the
    header, as np.dtype takes them."""
    return np.dtype([*ETHERNET.columns, *IPV4.columns, *UDP.columns, *header.columns, *rest])


def mac_array(mac: str) -> NDArray[np.uint8]:
    """A MAC address as `pack_datagrams` takes it."""
    return np.frombuffer(mac_bytes(mac), np.uint8)


def as_bytes(frames: Frames) -> NDArray[np.uint8]:
    """The same memory as bytes, shape (frames, frame length)."""
    return frames.view(np.uint8).reshape(len(frames), frames.dtype.itemsize)


def as_frames(rows: NDArray[np.uint8], dtype: FrameType) -> Frames:
    """The same memory, rows of whole frames, shape (frames, frame length), as frames."""
    return rows.view(dtype).reshape(len(rows))


def distinct_beginnings(rows: NDArray[np.uint8], size: int) -> set[bytes]:
    """Return the distinct first `size` bytes of the rows, shape (frames, size or more)."""
    return set(rows[:, :size].view(f"V{size}").ravel().tolist())


def ipv4_checksum(headers: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Internet checksum (RFC 1071) of each row of `headers`, shape (frames, 20)."""
    total: NDArray[np.uint32] = headers.view(">u2").sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & np.uint32(0xFFFF)


def pack_datagrams(
    header: Header,
    dtype: FrameType,
    count: int,
    /,
    *,
    src_mac: ArrayLike,
    dst_mac: ArrayLike,
    src_ip: ArrayLike,
    dst_ip: ArrayLike,
    **values: ArrayLike,
) -> Frames:
    """`count` frames of `dtype`, which is a `frame_type` of `header`.

    Every value is one for all frames or an array with one (a MAC address: 6 bytes) each; IP addresses are integers.
    Header fields without a value have their default; columns behind the header need one.
    """
    usual = _usual_bytes(header, dtype)[0]
    values |= {"dst_mac": dst_mac, "src_mac": src_mac, "src_ip": src_ip, "dst_ip": dst_ip}
    rows = np.empty((count, dtype.itemsize), np.uint8)
    rows[:, : len(usual)] = usual
    frames = as_frames(rows, dtype)
    for name, value in values.items():
        frames[name] = value
    frames["header_checksum"] = ipv4_checksum(as_bytes(frames)[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
    return frames


def only(frames: Frames, good: NDArray[np.bool_]) -> Frames:
    """The frames where `good` holds."""
    return frames if np.count_nonzero(good) == len(good) else frames[good]


def met_congestion(frames: Frames, flag: int) -> NDArray[np.bool_]:
    """Return which frames met a long queue: by their own CE mark, or since a flag tells of that of a packet that they
    are about.
    """
    marked: NDArray[np.bool_] = (frames["tos"] & ECN_MASK == CE) | (frames["flags"] & flag != 0)
    return marked


def well_formed_datagrams(
    header: Header, dtype: FrameType, buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]]
) -> Frames:
    """Return the frames of a receive buffer that are exactly as long as `dtype`, a `frame_type` of `header`.

    They are unfragmented IPv4 and UDP to the header's port with a right header checksum, right lengths, and the
    header's constants; copies, so the buffer may be used again.

    buffer: shape (frames or more, capacity in bytes), the capacity at least a whole frame. lengths: bytes received
    per frame, shape (frames,).
    """
    size = dtype.itemsize
    fitting = np.asarray(lengths) == size
    count = int(np.count_nonzero(fitting))
    if not count:
        return np.empty(0, dtype)
    # A copy of no more than whole frames, so that the buffer is free again.
    chosen = buffer[:count, :size] if count == len(fitting) else buffer[np.flatnonzero(fitting), :size]
    rows = chosen.copy()
    frames = as_frames(rows, dtype)
    _, mask, expected = _usual_bytes(header, dtype)
    looked_at = rows[:, : len(mask)] & mask
    # Sums that fold to 0xFFFF are its multiples, whatever the order of bytes (RFC 1071).
    words = rows[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES].view(np.uint16)
    good: NDArray[np.bool_] = words.sum(axis=1, dtype=np.uint32) % 0xFFFF == 0
    if looked_at.tobytes() != expected.tobytes() * count:  # seldom
        good &= (looked_at == expected).all(axis=1)
    return only(frames, good)


@functools.cache
def _usual_bytes(header: Header, dtype: FrameType) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the bytes of all headers where nobody says otherwise, for frames of a length; then which bits of the
    first bytes must be as they are there, and these bits.
    """
    usual, mask = np.zeros((2, 1), frame_type(header))
    for field in (*ETHERNET.fields, *IPV4.fields, *UDP.fields, *header.fields):
        usual[field.name] = field.default
        mask[field.name] = (1 << field.bits) - 1 if field.constant else 0
    usual["src_port"] = header.udp_port
    for name, bits, value in (
        ("total_length", 0xFFFF, dtype.itemsize - ETHERNET_BYTES),
        ("flags_fragment", FRAGMENT_MASK, usual["flags_fragment"]),
        ("dst_port", 0xFFFF, header.udp_port),
        ("udp_length", 0xFFFF, dtype.itemsize - ETHERNET_BYTES - IPV4_BYTES),
    ):
        mask[name], usual[name] = bits, value
    usual_bytes, mask_bytes = as_bytes(usual)[0], as_bytes(mask)[0]
    end = int(np.flatnonzero(mask_bytes)[-1]) + 1
    return usual_bytes, mask_bytes[:end], usual_bytes[:end] & mask_bytes[:end]


# ---- Frames that carry lanes, or none, behind a header with flags ----


@functools.cache
def lane_frame_type(header: Header, lanes: int) -> FrameType:
    """The whole Ethernet frame with `lanes` lanes."""
    return frame_type(header, ("lanes", ">i4", (lanes,)))


def pack_lane_frames(header: Header, lanes: NDArray[np.int32], /, **values: ArrayLike) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes), one per row; without lanes: shape (frames, 0). values: as
    gradbed.hosts.protocols.frames.pack_datagrams takes them."""
    count, lane_count = lanes.shape
    return pack_datagrams(header, lane_frame_type(header, lane_count), count, lanes=lanes, **values)


@dataclass(frozen=True)
class LaneFrames:
    """The frames that `parse_lane_frames` found in a batch, in order of arrival each; copies, so the receive buffer
    may be used again.
    """

    with_lanes: Frames
    without_lanes: Frames
    malformed: int
    """Frames that are neither."""


def parse_lane_frames(
    header: Header, buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int, flag: int, flags: int
) -> LaneFrames:
    """Check and pick the frames with `lanes` lanes, and those without, out of a receive buffer.

    buffer, lengths: as gradbed.hosts.protocols.frames.well_formed_datagrams takes them; what it does not
    take counts as malformed. So do frames with lanes that have the flag `flag`, and those without that have not all
    of `flags`.
    """
    found = well_formed_datagrams(header, lane_frame_type(header, lanes), buffer, lengths)
    found = only(found, found["flags"] & flag == 0)
    if len(found) == len(lengths):  # as usual
        return LaneFrames(found, np.empty(0, lane_frame_type(header, 0)), 0)
    bare = well_formed_datagrams(header, lane_frame_type(header, 0), buffer, lengths)
    bare = only(bare, bare["flags"] & flags == flags)
    return LaneFrames(found, bare, len(lengths) - len(found) - len(bare))
