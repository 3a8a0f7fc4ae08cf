"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats.datagram import ETHER_TYPE_IPV4
from gradbed.formats.packet_class import PacketClass, ether_type

ETHER_TYPE_VLAN = 0x8100
"""A tag tells the wavelength."""

CLASSES = (
    PacketClass("electrical", (ether_type(ETHER_TYPE_IPV4),), frozenset({"light"})),
    PacketClass("light", (ether_type(ETHER_TYPE_VLAN),), frozenset({"electrical"})),
)
