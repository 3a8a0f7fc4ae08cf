"""The compressed gradient's packets (p4src/include/compression/part.p4 has what both begin with).

    Ethernet / IPv4 / UDP, port 0x4743 / Part, 30 bytes / payload of up to 1408 bytes
    Ethernet / IPv4 / UDP, port 0x4743 / Acknowledgement, 26 bytes

Part: a piece of a worker's gradient, or of the sum on its way back, that can be read without the others
(gradbed.hosts.compressors.content); the value is the code times `unit`. Sequence numbers go on from gradient to
gradient.

Acknowledgement: all before `sequence` have come, and sequence + 1 + k for every bit k of `selective`. active: workers
that are still sending their gradients, as the server knows. arrived_bytes: of whole frames of parts that have come of
all workers of the job, repeated ones too; time_us: when this was said, by the server's clock; both modulo 2^32.
"""

from __future__ import annotations

from enum import IntFlag

from gradbed.formats.encoding import Form
from gradbed.formats.header import Field, Header

PART_PORT = 0x4743
TCP_PORT = PART_PORT
"""Of the server, for the baseline over the kernel's TCP."""
PART_VERSION = 1


class Flags(IntFlag):
    """Bits of the flags field."""

    ACK = 0x01
    CONGESTION = 0x02
    """On an ACK: a packet that it is about was marked CE on its way."""
    END = 0x04
    """The last packet of a gradient, or of a sum; without codes."""


_HEAD = (
    Field("version", 8, PART_VERSION, constant=True),
    Field("flags", 8, words=Flags),
    Field("job", 16),
    Field("sequence", 32),
)
PART = Header(
    "Part",
    (
        *_HEAD,
        Field("round", 32),
        Field("first", 32),
        Field("span", 16),
        Field("codes", 16),
        Field("form", 8, words=Form),
        Field("width_bits", 8, 32),
        Field("unit", 64, 1),
    ),
    PART_PORT,
)
ACKNOWLEDGEMENT = Header(
    "Acknowledgement",
    (*_HEAD, Field("selective", 64), Field("active", 16), Field("arrived_bytes", 32), Field("time_us", 32)),
    PART_PORT,
)

DISSECTED = {
    "ack": Flags.ACK.value,
    "part_end": Flags.END.value,
    "dense": Form.DENSE.value,
    "bitmap": Form.BITMAP.value,
    "coordinate": Form.COORDINATE.value,
}
"""What the dissector has to know besides (wireshark/compression.lua)."""
