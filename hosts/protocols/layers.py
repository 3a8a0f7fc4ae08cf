"""Scapy layers, made of the tables of their headers."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntFlag
from typing import Any

from scapy.fields import (
    ByteEnumField,
    ByteField,
    FieldListField,
    FlagsField,
    IntField,
    LongField,
    ShortField,
    SignedIntField,
    StrFixedLenField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from gradbed.formats.datagram import ECT_0
from gradbed.formats.header import Field, Header
from gradbed.formats.lanes import LANE_BYTES

_INTEGERS = {8: ByteField, 16: ShortField, 32: IntField, 64: LongField}


def layer_fields(header: Header) -> list[Any]:
    """Return a header's fields as Scapy's fields_desc."""
    return [_field(field) for field in header.fields]


def _field(field: Field) -> Any:
    if not field.is_integer:
        return StrFixedLenField(field.name, bytes(field.bits // 8), field.bits // 8)
    if field.words is None:
        return _INTEGERS[field.bits](field.name, field.default)
    words = {word.value: word.name for word in field.words}
    if issubclass(field.words, IntFlag):
        return FlagsField(field.name, field.default, field.bits, words)
    return ByteEnumField(field.name, field.default, words)


class LanesField(FieldListField):  # type: ignore[misc]
    """The rest of the packet as int32. Scapy's own list field refuses more than 100 elements."""

    def __init__(self) -> None:
        super().__init__("lanes", [], SignedIntField("lane", 0))

    def getfield(self, pkt: Packet | None, s: bytes) -> tuple[bytes, list[int]]:
        count = len(s) // LANE_BYTES
        end = count * LANE_BYTES
        return s[end:], list(struct.unpack(f">{count}i", s[:end]))


def bind_to_udp(header: Header, made: Iterable[type[Packet]], read: type[Packet] | None = None) -> None:
    """Datagrams of these layers go to the header's port, with checksum 0; what comes to it is read as one."""
    if read is not None:
        bind_bottom_up(UDP, read, dport=header.udp_port)
    for layer in made:
        bind_top_down(UDP, layer, sport=header.udp_port, dport=header.udp_port, chksum=0)


def datagram(
    layer: type[Packet],
    *,
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    tos: int = ECT_0,
    ttl: int = 64,
    src_port: int | None = None,
    **values: Any,
) -> Packet:
    """A whole frame as agents send it; bytes() of it gives the wire format. src_port: if it is not the header's own.
    values: of the layer's fields."""
    ip = IP(src=src_ip, dst=dst_ip, tos=tos, ttl=ttl, id=0, flags="DF")
    udp = UDP() if src_port is None else UDP(sport=src_port)
    return Ether(src=src_mac, dst=dst_mac) / ip / udp / layer(**values)
