"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.shuffle import CODED, CODED_PORT, CodedFlags

_KINDS = CodedFlags.REPAIR | CodedFlags.REQUEST


def _coded(name: str, value: CodedFlags) -> PacketClass:
    return PacketClass(name, (bits_of(CODED, "flags", DATAGRAM_BYTES, _KINDS, value), *udp_datagram(CODED_PORT)))


CLASSES = (
    _coded("scheduled", CodedFlags(0)),
    _coded("repair", CodedFlags.REPAIR),
    _coded("request", CodedFlags.REQUEST),
)
