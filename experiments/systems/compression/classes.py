"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats.compression import PART, PART_PORT, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram


def _part(name: str, value: Flags) -> PacketClass:
    return PacketClass(name, (bits_of(PART, "flags", DATAGRAM_BYTES, Flags.ACK, value), *udp_datagram(PART_PORT)))


CLASSES = (_part("part", Flags(0)), _part("ACK", Flags.ACK))
