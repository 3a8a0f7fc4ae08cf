"""The compressed gradient's packets as Scapy layers: the definition that everything else is checked against.

    Ethernet / IPv4 / UDP, destination port 0x4743, checksum 0 / Part, 30 bytes / payload of up to 1408 bytes
    Ethernet / IPv4 / UDP, destination port 0x4743, checksum 0 / Acknowledgement, 26 bytes

All fields are big-endian. Part: a piece of a worker's gradient, or of the sum on its way back, that can be read
without the others (hosts.compressors.wire). Sequence numbers go on from gradient to gradient.
"""

from __future__ import annotations

from scapy.fields import ByteEnumField, ByteField, FlagsField, IntField, LongField, ShortField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from hosts.compressors.wire import Form
from hosts.systems.compression.packets.packet_format import UDP_PORT, VERSION, Flags

_FLAGS = {flag.value: flag.name for flag in Flags}


def _head() -> list[object]:
    return [
        ByteField("version", VERSION),
        FlagsField("flags", 0, 8, _FLAGS),
        ShortField("job", 0),
        IntField("sequence", 0),
    ]


class Part(Packet):  # type: ignore[misc]
    """unit: the value is the code times it. first, span, codes: of hosts.compressors.wire.Written."""

    name = "Part"
    fields_desc = [  # noqa: RUF012 - Scapy's own idiom
        *_head(),
        IntField("round", 0),
        IntField("first", 0),
        ShortField("span", 0),
        ShortField("codes", 0),
        ByteEnumField("form", 0, {form.value: form.name for form in Form}),
        ByteField("width_bits", 32),
        LongField("unit", 1),
    ]


class Acknowledgement(Packet):  # type: ignore[misc]
    """All before `sequence` have come, and sequence + 1 + k for every bit k of `selective`. active: workers that are
    still sending their gradients, as the server knows. arrived_bytes: of whole frames of parts that have come of all
    workers of the job, repeated ones too; time_us: when this was said, by the server's clock; both modulo 2^32."""

    name = "Acknowledgement"
    fields_desc = [  # noqa: RUF012 - Scapy's own idiom
        *_head(),
        LongField("selective", 0),
        ShortField("active", 0),
        IntField("arrived_bytes", 0),
        IntField("time_us", 0),
    ]


class _Either(Packet):  # type: ignore[misc]
    """By the flag ACK."""

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: object, **kargs: object) -> type[Packet]:
        return Acknowledgement if _pkt and len(_pkt) > 1 and _pkt[1] & Flags.ACK else Part


bind_bottom_up(UDP, _Either, dport=UDP_PORT)
for _layer in (Part, Acknowledgement):
    bind_top_down(UDP, _layer, sport=UDP_PORT, dport=UDP_PORT, chksum=0)
