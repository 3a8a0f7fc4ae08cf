"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.roce import BTH, ROCE_PORT, Opcode


def _of_opcode(name: str, opcode: Opcode) -> PacketClass:
    return PacketClass(name, (bits_of(BTH, "opcode", DATAGRAM_BYTES, 0xFF, opcode), *udp_datagram(ROCE_PORT)))


CLASSES = (
    _of_opcode("ACK", Opcode.ACKNOWLEDGE),
    _of_opcode("CNP", Opcode.CNP),
    PacketClass("data", udp_datagram(ROCE_PORT)),
)
