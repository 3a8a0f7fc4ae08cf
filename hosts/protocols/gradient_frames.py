"""The hot path of the gradient packet: many whole frames at once as a NumPy structured array.

The layout is that of the Scapy layer in hosts.protocols.gradient; a test holds the two together byte for byte.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.protocols.gradient_format import (
    ETHERNET_BYTES,
    GRADIENT_BYTES,
    IPV4_BYTES,
    LANE_BYTES,
    UDP_BYTES,
    UDP_PORT,
    VERSION,
    frame_bytes,
)

Frames = NDArray[np.void]
"""Structured array of `frame_dtype(lanes)`, shape (frames,)."""

_ETHERTYPE_IPV4 = 0x0800
_VERSION_4_IHL_5 = 0x45
_PROTOCOL_UDP = 17
_DONT_FRAGMENT = 0x4000
_FRAGMENT_MASK = 0x3FFF  # more-fragments bit and fragment offset

_ETHERNET = [("dst_mac", "u1", 6), ("src_mac", "u1", 6), ("ether_type", ">u2")]
_IPV4 = [
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
]
_UDP = [("src_port", ">u2"), ("dst_port", ">u2"), ("udp_length", ">u2"), ("udp_checksum", ">u2")]
_GRADIENT = [
    ("version", "u1"),
    ("flags", "u1"),
    ("job", ">u2"),
    ("packet_number", ">u4"),
    ("switch_number", ">u2"),
    ("fan_in", ">u2"),
    ("worker_bitmap", ">u8"),
]


@functools.cache
def frame_dtype(lanes: int) -> np.dtype[np.void]:
    """The whole Ethernet frame with `lanes` lanes, packed, big-endian; `itemsize` is its length in bytes."""
    return np.dtype([*_ETHERNET, *_IPV4, *_UDP, *_GRADIENT, ("lanes", ">i4", (lanes,))])


def as_bytes(frames: Frames) -> NDArray[np.uint8]:
    """The same memory as bytes, shape (frames, frame length)."""
    return frames.view(np.uint8).reshape(len(frames), frames.dtype.itemsize)


def _ipv4_checksum(headers: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Internet checksum (RFC 1071) of each row of `headers`, shape (frames, 20)."""
    total: NDArray[np.uint32] = headers.view(">u2").sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & np.uint32(0xFFFF)


def pack_frames(
    lanes: NDArray[np.int32],
    *,
    src_mac: ArrayLike,
    dst_mac: ArrayLike,
    src_ip: ArrayLike,
    dst_ip: ArrayLike,
    job: ArrayLike,
    packet_number: ArrayLike,
    worker_bitmap: ArrayLike,
    flags: ArrayLike = 0,
    switch_number: ArrayLike = 0,
    fan_in: ArrayLike = 0,
    tos: ArrayLike = 0,
    ttl: ArrayLike = 64,
) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes); one per row.

    Every other argument is one value for all frames or an array with one value (a MAC address: 6 bytes) each.
    IP addresses are integers. Datagrams are atomic (DF, identification 0, RFC 6864); the UDP checksum is 0.
    """
    count, lane_count = lanes.shape
    frames = np.empty(count, frame_dtype(lane_count))
    values: dict[str, Any] = {
        "dst_mac": dst_mac,
        "src_mac": src_mac,
        "ether_type": _ETHERTYPE_IPV4,
        "version_ihl": _VERSION_4_IHL_5,
        "tos": tos,
        "total_length": frame_bytes(lane_count) - ETHERNET_BYTES,
        "identification": 0,
        "flags_fragment": _DONT_FRAGMENT,
        "ttl": ttl,
        "protocol": _PROTOCOL_UDP,
        "header_checksum": 0,
        "src_ip": src_ip,
        "dst_ip": dst_ip,
        "src_port": UDP_PORT,
        "dst_port": UDP_PORT,
        "udp_length": UDP_BYTES + GRADIENT_BYTES + LANE_BYTES * lane_count,
        "udp_checksum": 0,
        "version": VERSION,
        "flags": flags,
        "job": job,
        "packet_number": packet_number,
        "switch_number": switch_number,
        "fan_in": fan_in,
        "worker_bitmap": worker_bitmap,
        "lanes": lanes,
    }
    for name, value in values.items():
        frames[name] = value
    headers = as_bytes(frames)[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES]
    frames["header_checksum"] = _ipv4_checksum(headers)
    return frames


@dataclass(frozen=True)
class ParsedFrames:
    """What `parse_frames` made of a batch."""

    frames: Frames
    """Well-formed frames, in order of arrival; a copy, so the receive buffer may be used again."""
    malformed: int
    """Frames that are no gradient packets with the expected number of lanes."""


def parse_frames(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> ParsedFrames:
    """Check and pick the gradient frames with `lanes` lanes out of a receive buffer.

    buffer: shape (frames or more, capacity in bytes); the capacity is at least a whole frame. lengths: bytes
    received per frame, shape (frames,). Anything else than an unfragmented IPv4 datagram with a right header
    checksum, right lengths, the gradient port and the known version counts as malformed.
    """
    size = frame_bytes(lanes)
    count = len(lengths)
    fitting = np.flatnonzero(np.asarray(lengths) == size)
    # Fancy indexing copies: only whole frames are looked at, and the buffer is free again.
    rows = np.ascontiguousarray(buffer[fitting, :size])
    frames = rows.view(frame_dtype(lanes)).reshape(len(fitting))
    good = (
        (frames["ether_type"] == _ETHERTYPE_IPV4)
        & (frames["version_ihl"] == _VERSION_4_IHL_5)
        & (frames["total_length"] == size - ETHERNET_BYTES)
        & (frames["flags_fragment"] & _FRAGMENT_MASK == 0)
        & (frames["protocol"] == _PROTOCOL_UDP)
        & (_ipv4_checksum(rows[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES]) == 0)
        & (frames["dst_port"] == UDP_PORT)
        & (frames["udp_length"] == size - ETHERNET_BYTES - IPV4_BYTES)
        & (frames["version"] == VERSION)
    )
    well_formed = frames if good.all() else frames[good]
    return ParsedFrames(well_formed, count - len(well_formed))
