"""The hot path of the gradient packet: many whole frames at once as a NumPy structured array.

The layout is that of the Scapy layer in hosts.systems.aggregation.gradient; a test holds the two together, byte for
byte.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.protocols.datagram_format import CE, ECN_MASK, ECT_0
from hosts.protocols.datagram_frames import (
    DATAGRAM,
    Frames,
    as_bytes,
    only,
    pack_datagrams,
    well_formed_datagrams,
)
from hosts.systems.aggregation.gradient_format import UDP_PORT, VERSION, Flags

__all__ = [
    "Frames",
    "ParsedFrames",
    "as_bytes",
    "congested",
    "frame_dtype",
    "magnitudes",
    "pack_frames",
    "parse_frames",
]

_GRADIENT = [
    ("version", "u1"),
    ("flags", "u1"),
    ("job", ">u2"),
    ("packet_number", ">u4"),
    ("switch_number", ">u2"),
    ("fan_in", ">u2"),
    ("next_switch", ">u2"),
    ("next_fan_in", ">u2"),
    ("worker_bitmap", ">u8"),
    ("magnitude", ">u4"),
]
# Plain integers: the flags of an enumeration cost much in what runs for every packet.
_ACK, _NACK, _CONGESTION = Flags.ACK.value, Flags.NACK.value, Flags.CONGESTION.value
_NEGATIVE = _ACK | _NACK


@functools.cache
def frame_dtype(lanes: int) -> np.dtype[np.void]:
    """The whole Ethernet frame with `lanes` lanes, packed, big-endian; `itemsize` is its length in bytes."""
    return np.dtype([*DATAGRAM, *_GRADIENT, ("lanes", ">i4", (lanes,))])


def magnitudes(lanes: NDArray[np.int32]) -> NDArray[np.int64]:
    """The largest absolute value in each row of `lanes`, shape (frames, lanes); 0 to 2^31."""
    largest: NDArray[np.int64] = np.maximum(
        lanes.max(axis=1, initial=0).astype(np.int64), -lanes.min(axis=1, initial=0).astype(np.int64)
    )
    return largest


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
    next_switch: ArrayLike = 0,
    next_fan_in: ArrayLike = 0,
    magnitude: ArrayLike | None = None,
    tos: ArrayLike = ECT_0,
    ttl: ArrayLike = 64,
) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes); one per row. NACKs: shape (frames, 0).

    Every other argument is one value for all frames or an array with one value (a MAC address: 6 bytes) each.
    IP addresses are integers. Without `magnitude` it is the largest absolute value of a frame's lanes, and 0 in
    frames with the flag ACK. Datagrams are atomic (DF, identification 0, RFC 6864); the UDP checksum is 0.
    """
    count, lane_count = lanes.shape
    acks = np.asarray(flags) & _ACK != 0
    numbers = np.asarray(switch_number)
    if magnitude is None:
        magnitude = 0 if acks.all() else np.where(acks, 0, magnitudes(lanes))
    return pack_datagrams(
        frame_dtype(lane_count),
        {
            "version": VERSION,
            "flags": flags,
            "job": job,
            "packet_number": packet_number,
            "switch_number": switch_number,
            "fan_in": fan_in,
            "next_switch": next_switch,
            "next_fan_in": next_fan_in,
            "worker_bitmap": worker_bitmap,
            "magnitude": magnitude,
            "lanes": lanes,
        },
        count,
        src_mac=src_mac,
        dst_mac=dst_mac,
        src_ip=src_ip,
        dst_ip=dst_ip,
        src_port=np.where(acks | (numbers == 0), UDP_PORT, numbers),
        dst_port=UDP_PORT,
        tos=tos,
        ttl=ttl,
    )


def congested(frames: Frames) -> NDArray[np.bool_]:
    """Which frames met a long queue: by their own CE mark, or by that of a packet whose gradient is in them."""
    marked: NDArray[np.bool_] = (frames["tos"] & ECN_MASK == CE) | (frames["flags"] & _CONGESTION != 0)
    return marked


@dataclass(frozen=True)
class ParsedFrames:
    """What `parse_frames` made of a batch; copies, so the receive buffer may be used again."""

    frames: Frames
    """Well-formed gradients, sums and ACKs, in order of arrival."""
    negative_acknowledgements: Frames
    """Well-formed NACKs, of `frame_dtype(0)`, in order of arrival."""
    malformed: int
    """Frames that are neither."""


def parse_frames(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> ParsedFrames:
    """Check and pick the gradient frames with `lanes` lanes, and the NACKs, out of a receive buffer.

    buffer: shape (frames or more, capacity in bytes); the capacity is at least a whole frame. lengths: bytes
    received per frame, shape (frames,). Anything else than an unfragmented IPv4 datagram with a right header
    checksum, right lengths, the gradient port and the known version counts as malformed; so do a NACK with lanes
    and any other packet without them.
    """
    frames = _well_formed(buffer, lengths, lanes)
    frames = only(frames, frames["flags"] & _NACK == 0)
    negatives = _well_formed(buffer, lengths, 0)
    negatives = only(negatives, negatives["flags"] & _NEGATIVE == _NEGATIVE)
    return ParsedFrames(frames, negatives, len(lengths) - len(frames) - len(negatives))


def _well_formed(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> Frames:
    """The frames with exactly `lanes` lanes."""
    frames = well_formed_datagrams(buffer, lengths, frame_dtype(lanes), UDP_PORT)
    return only(frames, frames["version"] == VERSION)
