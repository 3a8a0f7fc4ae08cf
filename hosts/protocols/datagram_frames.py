"""What every format in batches shares: Ethernet, IPv4 and UDP around it, packed and checked as NumPy columns.

Datagrams are atomic (DF, identification 0, RFC 6864), the UDP checksum is 0.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.protocols.datagram_format import ECT_0, ETHERNET_BYTES, IPV4_BYTES

Frames = NDArray[np.void]
"""Structured array whose dtype begins with `DATAGRAM`, shape (frames,)."""

_ETHERTYPE_IPV4 = 0x0800
_VERSION_4_IHL_5 = 0x45
_PROTOCOL_UDP = 17
_DONT_FRAGMENT = 0x4000
_FRAGMENT_MASK = 0x3FFF  # more-fragments bit and fragment offset

DATAGRAM: list[Any] = [
    ("dst_mac", "u1", 6),
    ("src_mac", "u1", 6),
    ("ether_type", ">u2"),
    ("version_ihl", "u1"),
    ("tos", "u1"),
    ("total_length", ">u2"),
    ("identification", ">u2"),
    ("flags_fragment", ">u2"),
    ("ttl", "u1"),
    ("protocol", "u1"),
    ("header_checksum", ">u2"),
    ("src_ip", ">u4"),
    ("dst_ip", ">u4"),
    ("src_port", ">u2"),
    ("dst_port", ">u2"),
    ("udp_length", ">u2"),
    ("udp_checksum", ">u2"),
]
"""The first fields of a frame's dtype, packed and big-endian."""


def as_bytes(frames: Frames) -> NDArray[np.uint8]:
    """The same memory as bytes, shape (frames, frame length)."""
    return frames.view(np.uint8).reshape(len(frames), frames.dtype.itemsize)


def ipv4_checksum(headers: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Internet checksum (RFC 1071) of each row of `headers`, shape (frames, 20)."""
    total: NDArray[np.uint32] = headers.view(">u2").sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & np.uint32(0xFFFF)


def pack_datagrams(
    dtype: np.dtype[np.void],
    payload: dict[str, ArrayLike],
    count: int,
    *,
    src_mac: ArrayLike,
    dst_mac: ArrayLike,
    src_ip: ArrayLike,
    dst_ip: ArrayLike,
    src_port: ArrayLike,
    dst_port: int,
    tos: ArrayLike = ECT_0,
    ttl: ArrayLike = 64,
) -> Frames:
    """`count` frames of `dtype`, whose fields after `DATAGRAM` are those of `payload`.

    Every argument is one value for all frames or an array with one value (a MAC address: 6 bytes) each.
    """
    frames = np.empty(count, dtype)
    octets = as_bytes(frames)
    _, header = _expected_header(dtype.itemsize, dst_port)
    octets[:, : len(header)] = header
    for name, value in (
        ("dst_mac", dst_mac),
        ("src_mac", src_mac),
        ("tos", tos),
        ("flags_fragment", _DONT_FRAGMENT),
        ("ttl", ttl),
        ("src_ip", src_ip),
        ("dst_ip", dst_ip),
        ("src_port", src_port),
        *payload.items(),
    ):
        frames[name] = value
    frames["header_checksum"] = ipv4_checksum(octets[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
    return frames


def only(frames: Frames, good: NDArray[np.bool_]) -> Frames:
    """The frames where `good` holds."""
    return frames if good.all() else frames[good]


def well_formed_datagrams(
    buffer: NDArray[np.uint8],
    lengths: NDArray[np.integer[Any]],
    dtype: np.dtype[np.void],
    dst_port: int,
) -> Frames:
    """Those frames of a receive buffer that are exactly as long as `dtype`, and unfragmented IPv4 and UDP to a port
    with a right header checksum and right lengths; copies, so the buffer may be used again.

    buffer: shape (frames or more, capacity in bytes), the capacity at least a whole frame. lengths: bytes received
    per frame, shape (frames,).
    """
    size = dtype.itemsize
    fitting = np.asarray(lengths) == size
    if not np.count_nonzero(fitting):
        return np.empty(0, dtype)
    # A copy of no more than whole frames, so that the buffer is free again.
    rows = np.ascontiguousarray(buffer[np.flatnonzero(fitting), :size])
    frames = rows.view(dtype).reshape(len(rows))
    mask, header = _expected_header(size, dst_port)
    good = ((rows[:, : len(mask)] & mask) == header).all(axis=1)
    # Sums that fold to 0xFFFF are its multiples, whatever the order of bytes (RFC 1071).
    words = rows[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES].view(np.uint16)
    good &= words.sum(axis=1, dtype=np.uint32) % 0xFFFF == 0
    return only(frames, good)


@functools.cache
def _expected_header(frame_bytes: int, dst_port: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Which bits of the first bytes of a frame are the same in all datagrams of a length to a port, and what they
    are."""
    mask, header = np.zeros((2, 1), DATAGRAM)
    for name, bits, value in (
        ("ether_type", 0xFFFF, _ETHERTYPE_IPV4),
        ("version_ihl", 0xFF, _VERSION_4_IHL_5),
        ("total_length", 0xFFFF, frame_bytes - ETHERNET_BYTES),
        ("flags_fragment", _FRAGMENT_MASK, 0),
        ("protocol", 0xFF, _PROTOCOL_UDP),
        ("dst_port", 0xFFFF, dst_port),
        ("udp_length", 0xFFFF, frame_bytes - ETHERNET_BYTES - IPV4_BYTES),
    ):
        mask[name], header[name] = bits, value
    return as_bytes(mask)[0], as_bytes(header)[0]
