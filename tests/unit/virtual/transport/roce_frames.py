"""RoCEv2's frames made of the tables in formats/, without the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradbed.formats import roce
from gradbed.formats.datagram import DATAGRAM_BYTES, ETHERNET, ETHERNET_BYTES, IPV4, UDP
from gradbed.formats.header import Header
from gradbed.formats.roce import AETH, BTH, IMMEDIATE, RETH, SELECTIVE, Opcode
from tests.unit.virtual.transport.network import ip, mac


def header(table: Header, **values: Any) -> bytes:
    """Numbers, also for fields whose width is that of no integer."""
    defaults = {field.name: field.default for field in table.fields}
    assert set(values) <= set(defaults)
    return b"".join(int({**defaults, **values}[field.name]).to_bytes(field.bits // 8) for field in table.fields)


def read(table: Header, data: bytes) -> dict[str, int]:
    found = {}
    for field in table.fields:
        found[field.name], data = int.from_bytes(data[: field.bits // 8]), data[field.bits // 8 :]
    return found


def internet_checksum(data: bytes) -> int:
    total = sum(int(word) for word in np.frombuffer(data, ">u2"))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(
    source: int,
    destination: int,
    opcode: Opcode,
    behind: bytes,
    *,
    psn: int = 0,
    pair: int = 1,
    tos: int = 0,
    source_port: int = 0xC000,
    **bth: int,
) -> bytes:
    """From one host to another one's queue pair; behind: the BTH."""
    data = header(BTH, opcode=opcode, destination_pair=pair, psn=psn % 2**24, **bth) + behind + bytes(4)
    return datagram(source, destination, roce.ROCE_PORT, data, tos=tos, source_port=source_port)


def datagram(
    source: int, destination: int, udp_port: int, data: bytes, *, tos: int = 0, source_port: int = 9
) -> bytes:
    ip_bytes = DATAGRAM_BYTES - ETHERNET_BYTES + len(data)
    values = {"tos": tos, "total_length": ip_bytes, "src_ip": ip(source), "dst_ip": ip(destination)}
    checksum = internet_checksum(header(IPV4, **values))
    return (
        header(ETHERNET, src_mac=int.from_bytes(mac(source)), dst_mac=0x020100000001)
        + header(IPV4, **values, header_checksum=checksum)
        + header(UDP, src_port=source_port, dst_port=udp_port, udp_length=ip_bytes - 20)
        + data
    )


def write(
    source: int, destination: int, payload: bytes, *, tag: int = 0, size: int | None = None, **more: Any
) -> bytes:
    """A packet of a message with contents; size: of all of it, of which this is the first; None: the only one."""
    pad = bytes(-len(payload) % 4)
    reth = header(RETH, tag=tag, r_key=1, dma_length=len(payload) if size is None else size)
    more["flags"] = len(pad) << roce.PAD_SHIFT
    if size is None:
        immediate = header(IMMEDIATE, immediate=tag & 0xFFFFFFFF)
        return frame(source, destination, Opcode.WRITE_ONLY_WITH_IMMEDIATE, reth + immediate + payload + pad, **more)
    return frame(source, destination, Opcode.WRITE_FIRST, reth + payload + pad, **more)


def acknowledgement(
    source: int,
    destination: int,
    come: int,
    *,
    missing: bool = False,
    messages: int = 0,
    selective: dict[str, int] | None = None,
    **more: Any,
) -> bytes:
    """come: so many packets have, all before the next one; missing: that one is."""
    syndrome = roce.NEGATIVE_SEQUENCE if missing else 0
    behind = header(AETH, syndrome=syndrome, messages=messages) + (
        b"" if selective is None else header(SELECTIVE, **selective)
    )
    return frame(source, destination, Opcode.ACKNOWLEDGE, behind, psn=come if missing else come - 1, **more)


def notification(source: int, destination: int, **more: Any) -> bytes:
    return frame(source, destination, Opcode.CNP, bytes(roce.CNP_BYTES), congestion=roce.BECN, **more)


def behind_bth(data: bytes) -> bytes:
    """Without the ICRC."""
    return data[DATAGRAM_BYTES + BTH.size_bytes : -roce.ICRC_BYTES]


def bth_of(data: bytes) -> dict[str, int]:
    return read(BTH, data[DATAGRAM_BYTES:])
