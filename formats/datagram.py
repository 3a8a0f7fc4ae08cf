"""Ethernet, IPv4 and UDP (p4src/include/ipv4.p4), as agents send them.

Datagrams are atomic (DF, identification 0, RFC 6864), with UDP checksum 0.
"""

from __future__ import annotations

from gradbed.formats.header import Field, Header

ETHER_TYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
MAX_FRAME_BYTES = 1500

ECN_MASK = 0b11
NOT_ECT = 0b00
"""Of the IPv4 TOS byte: not to be marked, as pure acknowledgements are (RFC 3168, section 6.1.4)."""
ECT_0 = 0b10
"""Of the IPv4 TOS byte: the sender takes part in congestion control (RFC 3168)."""
CE = 0b11
"""Congestion experienced: a switch's queue was long."""

DONT_FRAGMENT = 0x4000
FRAGMENT_MASK = 0x3FFF
"""Of flags and offset, what is 0 in a datagram that is whole: the bit for more fragments, and the offset."""

ETHERNET = Header(
    "Ethernet", (Field("dst_mac", 48), Field("src_mac", 48), Field("ether_type", 16, ETHER_TYPE_IPV4, constant=True))
)
IPV4 = Header(
    "IPv4",
    (
        Field("version_ihl", 8, 0x45, constant=True),
        Field("tos", 8, ECT_0),
        Field("total_length", 16),
        Field("identification", 16),
        Field("flags_fragment", 16, DONT_FRAGMENT),
        Field("ttl", 8, 64),
        Field("protocol", 8, PROTOCOL_UDP, constant=True),
        Field("header_checksum", 16),
        Field("src_ip", 32),
        Field("dst_ip", 32),
    ),
)
UDP = Header(
    "UDP", (Field("src_port", 16), Field("dst_port", 16), Field("udp_length", 16), Field("udp_checksum", 16))
)
PLAIN = Header("Plain", ())
"""No header of ours behind UDP."""

ETHERNET_BYTES = ETHERNET.size_bytes
IPV4_BYTES = IPV4.size_bytes
DATAGRAM_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP.size_bytes
"""All three headers."""
