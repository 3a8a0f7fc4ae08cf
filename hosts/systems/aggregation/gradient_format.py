"""Numbers of the gradient packet that the Scapy layer and the NumPy frames share."""

from __future__ import annotations

from enum import IntFlag

UDP_PORT = 0x4742
VERSION = 2

BITMAP_BITS = 64
MAX_MAGNITUDE = (1 << 31) - 1
"""Switches add packets as long as the magnitudes of what they add are together no larger: no lane wraps."""


class Flags(IntFlag):
    """Bits of the gradient header's flags field."""

    ACK = 0x01
    """From the server: the lanes are the global sum."""
    RESEND = 0x02
    """The worker has sent this fragment before and heard nothing, or was asked for it by a NACK. On an ACK: the sum
    is due to such a packet, by which it became complete or was asked for again."""
    PARTIAL = 0x04
    """The lanes are a sum made in a switch."""
    NACK = 0x08
    """Together with ACK, and without lanes: the server asks one worker for its own gradient, past all switches."""
    CONGESTION = 0x10
    """A packet that went into the sum was marked CE on its way. On an ACK: one that went into the global sum was."""
    OVERFLOW = 0x20
    """A switch did not add this packet, since a lane of the sum might have left int32; no other switch tries."""
    RETRY = 0x40
    """The worker sends this fragment again, in case it was lost: switches add it as if it were the first time, and
    send a complete sum again; none gives up an incomplete one, as RESEND demands."""
    LATE = 0x80
    """The worker sends this fragment for the first time, but was held up by the repair of others. No switch looks."""
