"""The packet of ring all-reduce.

    Ethernet / IPv4 / UDP, both ports 0x4752 / Ring, 28 bytes / lanes

Every worker numbers the packets that it sends to the next worker on the ring (sequence), which acknowledges them;
round, step and fragment_number say what the lanes are. In the steps 0 to n - 2 of n workers (reduce-scatter) they are
a partial sum, from step n - 1 on (all-gather) the global sum, which is lane * 2^shift. An ACK says that all packets
before `sequence` have come, and by bit k of `selective` that packet sequence + 1 + k has; its round, fragment_number,
step and shift are 0.
"""

from __future__ import annotations

from enum import IntFlag

from gradbed.formats.header import Field, Header

RING_PORT = 0x4752
"""Another UDP port than that of gradients: switches forward these packets like any other."""


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


RING = Header(
    "Ring",
    (
        Field("version", 8, 1, constant=True),
        Field("flags", 8, words=RingFlags),
        Field("job", 16),
        Field("sequence", 32),
        Field("selective", 64),
        Field("round", 32),
        Field("fragment_number", 32),
        Field("step", 16),
        Field("shift", 16),
    ),
    RING_PORT,
)
