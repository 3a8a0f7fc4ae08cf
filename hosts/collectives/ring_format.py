"""Numbers of the ring all-reduce packet that the Scapy layer and the NumPy frames share."""

from __future__ import annotations

from enum import IntFlag

RING_PORT = 0x4752
"""Another UDP port than that of gradients: switches forward these packets like any other."""
RING_VERSION = 1


class RingFlags(IntFlag):
    """Bits of the ring header's flags field."""

    ACK = 0x01
    """Acknowledges what came from the worker before on the ring; without lanes."""
    CONGESTION = 0x02
    """On an ACK: a packet that it is about was marked CE on its way."""
    LOW = 0x04
    """The partial sum leaves int32: these are the lower 32 bits of its 64, and another packet has the upper."""
    HIGH = 0x08
    """The upper 32 bits."""
