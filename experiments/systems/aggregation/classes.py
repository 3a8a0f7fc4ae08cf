"""The classes of packets that hosts, links and switches count apart."""

from __future__ import annotations

from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import PacketClass, bits_of, udp_datagram
from gradbed.formats.ring import RING, RING_PORT, RingFlags


def _gradient(name: str, mask: Flags, value: Flags, *becomes: str) -> PacketClass:
    words = (bits_of(GRADIENT, "flags", DATAGRAM_BYTES, mask, value), *udp_datagram(GRADIENT_PORT))
    return PacketClass(name, words, frozenset(becomes))


def _ring(name: str, value: RingFlags) -> PacketClass:
    return PacketClass(name, (bits_of(RING, "flags", DATAGRAM_BYTES, RingFlags.ACK, value), *udp_datagram(RING_PORT)))


_KINDS = Flags.ACK | Flags.NACK | Flags.PARTIAL

CLASSES = (
    # A switch that adds the last of them sends the sum on in its place.
    _gradient("gradient", _KINDS, Flags(0), "partial sum"),
    _gradient("partial sum", _KINDS, Flags.PARTIAL),
    _gradient("NACK", Flags.ACK | Flags.NACK, Flags.ACK | Flags.NACK),
    _gradient("ACK", Flags.ACK, Flags.ACK),
    _ring("ring ACK", RingFlags.ACK),
    _ring("ring", RingFlags(0)),
)
