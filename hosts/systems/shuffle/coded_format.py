"""Numbers of the shuffle's packets that P4 program, Scapy layers and NumPy frames share
(p4src/include/shuffle/coded.p4)."""

from __future__ import annotations

from enum import IntFlag

from hosts.protocols.datagram_format import ETHERNET_BYTES, IPV4_BYTES, MAX_FRAME_BYTES, UDP_BYTES

CODED_PORT = 0x4743
CODED_VERSION = 1

MULTICAST_IP = "239.255.71.67"
"""Destination of packets that go by bit string: no switch looks at it."""
MULTICAST_MAC = "01:00:5e:7f:47:43"
"""Of all multicast packets of a shuffle (RFC 1112's for MULTICAST_IP)."""

COMPONENTS = 8
"""Fragments of different samples that a repair is the sum of, at most."""
REQUEST_BITS = 512
"""Fragments that a request tells of."""


class CodedFlags(IntFlag):
    """Bits of the header's second byte."""

    REPAIR = 0x01
    REQUEST = 0x02
    LOAN = 0x04
    BY_BIT_STRING = 0x08


HEADER_BYTES = 16
"""Without the bit string."""


def frame_overhead_bytes(bits: int) -> int:
    """Of a whole Ethernet frame with a bit string of so many bits, before its fragment."""
    return ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + HEADER_BYTES + bits // 8


REPAIR_BYTES = 2 + 6 * COMPONENTS
"""Between header and fragment of a repair: how many components there are, and which."""


def most_fragment_bytes(bits: int) -> int:
    """The longest fragment that fits a frame, that of a repair included."""
    return MAX_FRAME_BYTES - frame_overhead_bytes(bits) - REPAIR_BYTES
