"""Lanes: the int32 values that a packet carries (two's complement, big-endian), and how many of them there may be."""

from __future__ import annotations

from gradbed.formats.datagram import DATAGRAM_BYTES, MAX_FRAME_BYTES

LANE_BYTES = 4
LANE_MULTIPLE = 32
"""p4src/include/lanes.p4 makes lanes in blocks of this many."""
LANES_HEADER_BYTES = 28
"""Between the UDP header and the lanes, in every format that carries lanes: as many of them fit a frame."""
HEADER_BYTES = DATAGRAM_BYTES + LANES_HEADER_BYTES
MAX_LANES = (MAX_FRAME_BYTES - HEADER_BYTES) // LANE_BYTES // LANE_MULTIPLE * LANE_MULTIPLE


def frame_bytes(lanes: int) -> int:
    """Return the length of a whole Ethernet frame (without FCS) that carries `lanes` lanes."""
    return HEADER_BYTES + LANE_BYTES * lanes
