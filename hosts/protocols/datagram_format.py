"""Numbers of Ethernet, IPv4 and UDP that packets in batches and Scapy layers share."""

from __future__ import annotations

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
MAX_FRAME_BYTES = 1500

ECN_MASK = 0b11
NOT_ECT = 0b00
"""Of the IPv4 TOS byte: not to be marked, as pure acknowledgements are (RFC 3168, section 6.1.4)."""
ECT_0 = 0b10
"""Of the IPv4 TOS byte: the sender takes part in congestion control (RFC 3168)."""
CE = 0b11
"""Congestion experienced: a switch's queue was long."""
