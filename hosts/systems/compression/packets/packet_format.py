"""Numbers of the compressed gradient's packets that the Scapy layers and the NumPy frames share."""

from __future__ import annotations

from enum import IntFlag

UDP_PORT = 0x4743
TCP_PORT = UDP_PORT
"""Of the server, for the baseline over the kernel's TCP."""
VERSION = 1


class Flags(IntFlag):
    """Bits of the flags field."""

    ACK = 0x01
    CONGESTION = 0x02
    """On an ACK: a packet that it is about was marked CE on its way."""
    END = 0x04
    """The last packet of a gradient, or of a sum; without codes."""
