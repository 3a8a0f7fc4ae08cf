"""Frames for checks, made without a library: a check that makes thousands must not take seconds."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

ETHER_TYPE_IPV4 = 0x0800
TCP, UDP = 6, 17


def mac(number: int) -> bytes:
    """02:00:00:00:00:00 plus a number."""
    return (0x02 << 40 | number).to_bytes(6, "big")


def ethernet(dst: int, src: int, ether_type: int, payload: bytes) -> bytes:
    """dst, src: numbers of MAC addresses."""
    return mac(dst) + mac(src) + struct.pack("!H", ether_type) + payload


def ipv4(
    src: str,
    dst: str,
    ports: tuple[int, int],
    payload: bytes = b"",
    *,
    protocol: int = UDP,
    ttl: int = 64,
    dscp_ecn: int = 0,
) -> bytes:
    """An IPv4 packet of UDP or TCP, whose own checksum is left out."""
    if protocol == UDP:
        transport = struct.pack("!4H", *ports, 8 + len(payload), 0)
    else:
        transport = struct.pack("!2H2I4H", *ports, 0, 0, 0x5000, 0, 0, 0)
    length = 20 + len(transport) + len(payload)
    addresses = IPv4Address(src).packed + IPv4Address(dst).packed
    header = struct.pack("!BBHHHBBH", 0x45, dscp_ecn, length, 0, 0, ttl, protocol, 0) + addresses
    checksum = ~ones_sum(header) & 0xFFFF
    return header[:10] + struct.pack("!H", checksum) + header[12:] + transport + payload


def routed(packet: bytes, port_mac: int = 1, host_mac: int = 2) -> bytes:
    """A frame as a host sends it to its gateway."""
    return ethernet(port_mac, host_mac, ETHER_TYPE_IPV4, packet)


def ones_sum(data: bytes) -> int:
    """Of 16-bit words in one's complement; 0xffff over a header with its right checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
