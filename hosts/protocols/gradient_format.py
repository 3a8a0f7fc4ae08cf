"""Numbers of the gradient packet that the Scapy layer and the NumPy frames share."""

from __future__ import annotations

from enum import IntFlag

UDP_PORT = 0x4742
VERSION = 1

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
GRADIENT_BYTES = 20
HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + GRADIENT_BYTES
LANE_BYTES = 4
MAX_FRAME_BYTES = 1500

LANE_MULTIPLE = 32
"""p4src/include/lanes.p4 makes lanes in blocks of this many."""
MAX_LANES = (MAX_FRAME_BYTES - HEADER_BYTES) // LANE_BYTES // LANE_MULTIPLE * LANE_MULTIPLE

BITMAP_BITS = 64
PACKET_NUMBERS = 1 << 32


class Flags(IntFlag):
    """Bits of the gradient header's flags field."""

    ACK = 0x01
    """From the server: the lanes are the global sum."""
    RESEND = 0x02
    """The worker has sent this fragment before and heard nothing. On an ACK: the sum is due to such a packet, by
    which it became complete or was asked for again."""
    PARTIAL = 0x04
    """The lanes are a sum made in a switch."""


def frame_bytes(lanes: int) -> int:
    """Length of a whole Ethernet frame (without FCS) that carries `lanes` lanes."""
    return HEADER_BYTES + LANE_BYTES * lanes
