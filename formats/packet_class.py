"""Classes of packets that links, switches and hosts count apart, by what stands in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradbed.formats.datagram import ETHER_TYPE_IPV4, ETHERNET_BYTES, PROTOCOL_UDP
from gradbed.formats.header import Header

Word = tuple[int, int, int]
"""Offset in the frame in bytes, mask, value: of 16 bits, big-endian."""

OTHER = "other"
"""What is of no class."""


@dataclass(frozen=True)
class PacketClass:
    """A frame is of the first class all of whose words fit; bytes behind its end count as 0.

    becomes: as which classes, besides its own, such a packet may leave a switch; None: as any, since nobody knows
    what the switch's program does. agents_only: no kernel of a host sends or takes in any.
    """

    name: str
    words: tuple[Word, ...]
    becomes: frozenset[str] | None = frozenset()
    agents_only: bool = True


def in_any_form(classes: Sequence[PacketClass]) -> tuple[PacketClass, ...]:
    """Return the classes for a network whose switches may encapsulate packets."""
    return tuple(replace(each, becomes=None) for each in classes)


def ether_type(value: int) -> Word:
    """Return the offset, mask and value by which frames of an EtherType are recognised."""
    return ETHERNET_BYTES - 2, 0xFFFF, value


def udp_datagram(port: int) -> tuple[Word, ...]:
    """Return the words of IPv4 without options, and UDP to that port."""
    return (
        (ETHERNET_BYTES + 22, 0xFFFF, port),
        ether_type(ETHER_TYPE_IPV4),
        (ETHERNET_BYTES, 0xFF00, 0x4500),
        (ETHERNET_BYTES + 8, 0x00FF, PROTOCOL_UDP),
    )


def bits_of(header: Header, name: str, at_bytes: int, mask: int, value: int) -> Word:
    """Return the word of a field of 8 or 16 bits, of a header that begins at this offset of the frame."""
    for field in header.fields:
        if field.name == name:
            if field.bits == 16:
                return at_bytes, mask, value
            if field.bits == 8:
                return at_bytes, mask << 8, value << 8
            break
        at_bytes += field.bits // 8
    raise ValueError(f"{header.name} has no field {name} of 8 or 16 bits")


def protocol(number: int) -> tuple[Word, ...]:
    """Return the words of IPv4 with this protocol, whatever its options."""
    return ether_type(ETHER_TYPE_IPV4), (ETHERNET_BYTES + 8, 0x00FF, number)


BY_PROTOCOL: Sequence[PacketClass] = (
    PacketClass("UDP", protocol(PROTOCOL_UDP), None),
    PacketClass("TCP", protocol(6), None, agents_only=False),
    PacketClass("ICMP", protocol(1), None, agents_only=False),
    PacketClass("IPv4", (ether_type(ETHER_TYPE_IPV4),), None, agents_only=False),
    PacketClass("ARP", (ether_type(0x0806),), None, agents_only=False),
    PacketClass("IPv6", (ether_type(0x86DD),), None, agents_only=False),
)
"""For programs of which nothing is known."""
