"""The shuffle's packets as Scapy layers: the definition that everything else is checked against.

    Ethernet / IPv4 / UDP, destination port 0x4743, checksum 0 / Coded, 16 bytes and the bit string / what it carries

What it carries: of a scheduled packet a fragment, the XOR of one of each of the transmission's samples; of a repair
(REPAIR) its Components and a fragment, their XOR; of a request (REQUEST) a Request. All fields are big-endian. The
length of the bit string is the network's, not the packet's.
"""

from __future__ import annotations

from scapy.fields import (
    ByteField,
    FlagsField,
    IntField,
    ShortField,
    StrFixedLenField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from hosts.systems.shuffle.coded_format import (
    CODED_PORT,
    CODED_VERSION,
    COMPONENTS,
    REQUEST_BITS,
    CodedFlags,
)


class Coded(Packet):  # type: ignore[misc]
    """The header without the bit string, which follows it.

    bift_id: number of the tree (RFC 8296's BIFT-id), bfir_id: the sender's index and 1. fragment: of the
    transmission; of a request the first one that it tells of. fragments: that the transmission has.
    """

    name = "Coded"
    fields_desc = [  # noqa: RUF012 - Scapy's own idiom
        ByteField("version", CODED_VERSION),
        FlagsField("flags", 0, 8, {flag.value: flag.name for flag in CodedFlags}),
        ShortField("job", 0),
        ShortField("bift_id", 0),
        ShortField("bfir_id", 0),
        IntField("transmission", 0),
        ShortField("fragment", 0),
        ShortField("fragments", 1),
    ]


class Component(Packet):  # type: ignore[misc]
    """A fragment of a sample that is in the sum of a repair."""

    name = "Component"
    fields_desc = [IntField("sample", 0), ShortField("fragment", 0)]  # noqa: RUF012

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s


class Request(Packet):  # type: ignore[misc]
    """Bit i (from the left) of missing: the fragment i after the header's is missing."""

    name = "Request"
    fields_desc = [  # noqa: RUF012
        IntField("sample", 0),
        StrFixedLenField("missing", bytes(REQUEST_BITS // 8), REQUEST_BITS // 8),
    ]


def repair(components: list[tuple[int, int]], payload: bytes) -> bytes:
    """What a repair carries. components: (sample, fragment)."""
    listed = [*components, *[(0, 0)] * (COMPONENTS - len(components))]
    parts = b"".join(bytes(Component(sample=sample, fragment=fragment)) for sample, fragment in listed)
    return len(components).to_bytes(2, "big") + parts + payload


def coded_frame(
    *,
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    bits: int,
    bit_string: int = 0,
    carries: bytes = b"",
    ttl: int = 64,
    **header: int,
) -> Packet:
    """A whole frame as agents send it; bytes() of it gives the wire format. bits: length of the bit string."""
    return (
        Ether(src=src_mac, dst=dst_mac)
        / IP(src=src_ip, dst=dst_ip, tos=0, ttl=ttl, id=0, flags="DF")
        / UDP(sport=CODED_PORT, dport=CODED_PORT, chksum=0)
        / Coded(**header)
        / Raw(bit_string.to_bytes(bits // 8, "big") + carries)
    )
