"""RoCEv2's packets (InfiniBand Architecture Specification, volume 1, annex A17), as hosts' NICs send them.

    Ethernet / IPv4 / UDP, to port 4791 / BTH, 12 bytes / what the opcode adds / payload / ICRC, 4 bytes

A message is an RDMA WRITE with immediate data: its first packet has a RETH, its last the immediate data, and one of
one packet both. The tag of the message is the RETH's virtual address, and its lower half the immediate data. An
R_Key of 1 says that the message has contents, 0 that it is a length alone: its payload is zeros that nobody ever
writes. Packets of a queue pair are numbered modulo 2^24, from 0 on. The payload is padded to a multiple of 4 bytes.
UDP's source port is made of both queue pairs' numbers, so that hashes tell flows apart. Nobody computes the
invariant CRC: it is 0.

An acknowledgement has an AETH. The PSN of a positive one is the last packet that has come with all before it; that
of a negative one (syndrome 0x60) the packet that is missing. A congestion notification packet (CNP) has 16 bytes of
zeros.

Two things go beyond RoCE. With selective repeat, or where the congestion control asks for it, an acknowledgement has
a SELECTIVE header behind its AETH: how many bytes came marked so far, modulo 2^32, and of a block of 64 packets
which have come. And a receiver holds packets that came out of order, as IRN does (Mittal et al., "Revisiting Network
Support for RDMA", SIGCOMM 2018); Wireshark shows that header as payload.
"""

from __future__ import annotations

from enum import IntEnum

from gradbed.formats.datagram import DATAGRAM_BYTES, ETHERNET_BYTES
from gradbed.formats.header import Field, Header

ROCE_PORT = 4791
LEAST_SOURCE_PORT = 0xC000
PSN_BITS = 24
ICRC_BYTES = 4
CNP_BYTES = 16
ACKNOWLEDGE_REQUEST = 0x80
"""Of the BTH: the receiver answers at once."""
BECN = 0x40
"""Of the BTH of a CNP."""
PAD_SHIFT = 4
"""Of the BTH's flags: where the number of bytes of padding is."""
NEGATIVE_SEQUENCE = 0x60
"""Syndrome of a negative acknowledgement: a packet is missing."""
WITH_CONTENTS, LENGTH_ALONE = 1, 0
"""R_Keys."""


class Opcode(IntEnum):
    """Opcodes of the reliable connection, and that of the CNP."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST_WITH_IMMEDIATE = 0x09
    WRITE_ONLY_WITH_IMMEDIATE = 0x0B
    ACKNOWLEDGE = 0x11
    CNP = 0x81


BTH = Header(
    "BTH",
    (
        Field("opcode", 8, words=Opcode),
        Field("flags", 8),
        Field("partition_key", 16, 0xFFFF),
        Field("congestion", 8),
        Field("destination_pair", 24),
        Field("acknowledge", 8),
        Field("psn", 24),
    ),
)
RETH = Header("RETH", (Field("tag", 64), Field("r_key", 32), Field("dma_length", 32)))
IMMEDIATE = Header("Immediate", (Field("immediate", 32),))
AETH = Header("AETH", (Field("syndrome", 8), Field("messages", 24)))
SELECTIVE = Header("Selective", (Field("marked_bytes", 32), Field("block_psn", 32), Field("selective", 64)))
"""Bit k of `selective` (the lowest is 0): packet block_psn + k has come."""


def most_ip_bytes(mtu_bytes: int) -> int:
    """Return the greatest length of an IPv4 packet whose part of a message has at most mtu_bytes."""
    headers = DATAGRAM_BYTES - ETHERNET_BYTES + BTH.size_bytes + RETH.size_bytes + IMMEDIATE.size_bytes
    return headers + -(-mtu_bytes // 4) * 4 + ICRC_BYTES
