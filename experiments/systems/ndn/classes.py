"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import ETHER_TYPE
from gradbed.formats.packet_class import PacketClass, ether_type


def _packet(name: str, kind: int, *becomes: str) -> PacketClass:
    words = ((ETHERNET_BYTES, 0xFF00, kind << 8), ether_type(ETHER_TYPE))
    return PacketClass(name, words, frozenset(becomes))


CLASSES = (
    # A router that holds the Data answers the Interest, one that had it before, or has no way, sends a Nack.
    _packet("Interest", tlv.INTEREST, "Data", "LpPacket"),
    _packet("Data", tlv.DATA),
    _packet("LpPacket", tlv.LP_PACKET, "Interest", "Data"),
)
