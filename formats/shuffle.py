"""The shuffle's packets (p4src/include/shuffle/coded.p4).

    Ethernet / IPv4 / UDP, port 0x4743 / Coded, 16 bytes / bit string / what it carries

bift_id: number of the tree (RFC 8296's BIFT-id), bfir_id: the sender's index and 1. fragment: of the transmission; of
a request the first one that it tells of. fragments: that the transmission has. The length of the bit string is the
network's, not the packet's. What it carries: of a scheduled packet a fragment, the XOR of one of each of the
transmission's samples; of a repair (REPAIR) how many components it has (16 bits), COMPONENTS of them, and a fragment,
their XOR; of a request (REQUEST) a Request.
"""

from __future__ import annotations

from enum import IntFlag

from gradbed.formats.addresses import multicast_mac
from gradbed.formats.datagram import DATAGRAM_BYTES, MAX_FRAME_BYTES
from gradbed.formats.header import Field, Header

CODED_PORT = 0x4743

MULTICAST_IP = "239.255.71.67"
"""Destination of packets that go by bit string: no switch looks at it."""
MULTICAST_MAC = multicast_mac(MULTICAST_IP)
"""Of all multicast packets of a shuffle."""

COMPONENTS = 8
"""Fragments of different samples that a repair is the sum of, at most."""
REQUEST_BITS = 512
"""Fragments that a request tells of."""
USUAL_BITS = 128
"""Length of the bit string, where nobody says otherwise."""


class CodedFlags(IntFlag):
    """Bits of the header's second byte."""

    REPAIR = 0x01
    REQUEST = 0x02
    LOAN = 0x04
    BY_BIT_STRING = 0x08


CODED = Header(
    "Coded",
    (
        Field("version", 8, 1, constant=True),
        Field("flags", 8, words=CodedFlags),
        Field("job", 16),
        Field("bift_id", 16),
        Field("bfir_id", 16),
        Field("transmission", 32),
        Field("fragment", 16),
        Field("fragments", 16, 1),
    ),
    CODED_PORT,
)
COMPONENT = Header("Component", (Field("sample", 32), Field("fragment", 16)))
"""A fragment of a sample that is in the sum of a repair."""
REQUEST = Header("Request", (Field("sample", 32), Field("missing", REQUEST_BITS)))
"""Bit i (from the left) of missing: the fragment i after the header's is missing."""

REPAIR_BYTES = 2 + COMPONENT.size_bytes * COMPONENTS
"""Between bit string and fragment of a repair."""


def frame_overhead_bytes(bits: int) -> int:
    """Return the bytes of an Ethernet frame with a bit string of this length, without its fragment."""
    return DATAGRAM_BYTES + CODED.size_bytes + bits // 8


def most_fragment_bytes(bits: int) -> int:
    """Return the longest fragment that fits a frame, that of a repair included."""
    return MAX_FRAME_BYTES - frame_overhead_bytes(bits) - REPAIR_BYTES


DISSECTED = {
    "repair": CodedFlags.REPAIR.value,
    "request": CodedFlags.REQUEST.value,
    "components": COMPONENTS,
    "request_bits": REQUEST_BITS,
    "bits": USUAL_BITS,
}
"""What the dissector has to know besides (wireshark/shuffle.lua)."""
