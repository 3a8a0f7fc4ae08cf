"""The shuffle's packets as Scapy layers (formats/shuffle.py)."""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet, Raw

from gradbed.formats.shuffle import CODED, COMPONENT, COMPONENTS, REQUEST
from gradbed.hosts.protocols.layers import bind_to_udp, datagram, layer_fields


class Coded(Packet):  # type: ignore[misc]
    """The header without the bit string, which follows it."""

    name = CODED.name
    fields_desc = layer_fields(CODED)


class Component(Packet):  # type: ignore[misc]
    """A fragment of a sample that is in the sum of a repair."""

    name = COMPONENT.name
    fields_desc = layer_fields(COMPONENT)


class Request(Packet):  # type: ignore[misc]
    """The contents of a request behind the bit string."""

    name = REQUEST.name
    fields_desc = layer_fields(REQUEST)


bind_to_udp(CODED, [Coded])


def repair(components: list[tuple[int, int]], payload: bytes) -> bytes:
    """Return the contents of a repair. components: (sample, fragment)."""
    listed = [*components, *[(0, 0)] * (COMPONENTS - len(components))]
    parts = b"".join(bytes(Component(sample=sample, fragment=fragment)) for sample, fragment in listed)
    return len(components).to_bytes(2, "big") + parts + payload


def coded_frame(*, bits: int, bit_string: int = 0, carries: bytes = b"", **values: Any) -> Packet:
    """A whole frame as agents send it; bytes() of it gives the wire format. bits: length of the bit string.
    values: of the header's fields, and addresses, as gradbed.hosts.protocols.layers.datagram takes them."""
    return datagram(Coded, tos=0, **values) / Raw(bit_string.to_bytes(bits // 8, "big") + carries)
