"""The hot path of the ring all-reduce packet: many whole frames at once as a NumPy structured array.

The layout is that of the Scapy layer in hosts.collectives.ring; a test holds the two together byte for byte.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.collectives.ring_format import RING_PORT, RING_VERSION, RingFlags
from hosts.protocols.datagram_format import CE, ECN_MASK, ECT_0
from hosts.protocols.datagram_frames import DATAGRAM, Frames, only, pack_datagrams, well_formed_datagrams

_RING = [
    ("version", "u1"),
    ("flags", "u1"),
    ("job", ">u2"),
    ("sequence", ">u4"),
    ("selective", ">u8"),
    ("round", ">u4"),
    ("fragment_number", ">u4"),
    ("step", ">u2"),
    ("shift", ">u2"),
]


@functools.cache
def ring_frame_dtype(lanes: int) -> np.dtype[np.void]:
    """The whole Ethernet frame with `lanes` lanes, packed, big-endian; `itemsize` is its length in bytes."""
    return np.dtype([*DATAGRAM, *_RING, ("lanes", ">i4", (lanes,))])


def pack_ring_frames(
    lanes: NDArray[np.int32],
    *,
    src_mac: ArrayLike,
    dst_mac: ArrayLike,
    src_ip: ArrayLike,
    dst_ip: ArrayLike,
    job: ArrayLike,
    sequence: ArrayLike,
    flags: ArrayLike = 0,
    selective: ArrayLike = 0,
    round: ArrayLike = 0,
    fragment_number: ArrayLike = 0,
    step: ArrayLike = 0,
    shift: ArrayLike = 0,
    tos: ArrayLike = ECT_0,
    ttl: ArrayLike = 64,
) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes); one per row. ACKs: shape (frames, 0).

    Every other argument is one value for all frames or an array with one value (a MAC address: 6 bytes) each.
    IP addresses are integers.
    """
    count, lane_count = lanes.shape
    payload: dict[str, ArrayLike] = {
        "version": RING_VERSION,
        "flags": flags,
        "job": job,
        "sequence": sequence,
        "selective": selective,
        "round": round,
        "fragment_number": fragment_number,
        "step": step,
        "shift": shift,
        "lanes": lanes,
    }
    return pack_datagrams(
        ring_frame_dtype(lane_count),
        payload,
        count,
        src_mac=src_mac,
        dst_mac=dst_mac,
        src_ip=src_ip,
        dst_ip=dst_ip,
        src_port=RING_PORT,
        dst_port=RING_PORT,
        tos=tos,
        ttl=ttl,
    )


def met_congestion(frames: Frames) -> NDArray[np.bool_]:
    """Which frames were marked on their way, or tell of one that was."""
    marked: NDArray[np.bool_] = (frames["tos"] & ECN_MASK == CE) | (frames["flags"] & RingFlags.CONGESTION != 0)
    return marked


@dataclass(frozen=True)
class ParsedRingFrames:
    """What `parse_ring_frames` made of a batch; copies, so the receive buffer may be used again."""

    data: Frames
    """Well-formed packets with lanes, in order of arrival."""
    acknowledgements: Frames
    """Well-formed ACKs, of `ring_frame_dtype(0)`, in order of arrival."""
    malformed: int
    """Frames that are neither."""


def parse_ring_frames(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> ParsedRingFrames:
    """Check and pick the ring frames with `lanes` lanes, and the ACKs, out of a receive buffer.

    buffer, lengths: as hosts.protocols.datagram_frames.well_formed_datagrams takes them. Anything else than a
    datagram that it takes, to the ring's port and with the known version, counts as malformed; so do an ACK with
    lanes and any other packet without them.
    """
    data = _well_formed(buffer, lengths, lanes)
    data = only(data, data["flags"] & RingFlags.ACK == 0)
    acknowledgements = _well_formed(buffer, lengths, 0)
    acknowledgements = only(acknowledgements, acknowledgements["flags"] & RingFlags.ACK != 0)
    return ParsedRingFrames(data, acknowledgements, len(lengths) - len(data) - len(acknowledgements))


def _well_formed(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> Frames:
    frames = well_formed_datagrams(buffer, lengths, ring_frame_dtype(lanes), RING_PORT)
    return only(frames, frames["version"] == RING_VERSION)
