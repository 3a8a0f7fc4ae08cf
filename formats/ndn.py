"""What NDN's routers, controller and hosts agree on (p4src/include/ndn/packet.p4).

Names and packets are TLVs (formats/tlv.py).
"""

from __future__ import annotations

from gradbed.formats import tlv
from gradbed.formats.addresses import mac_bytes
from gradbed.formats.tlv import generic

ETHER_TYPE = 0x8624
MULTICAST_MAC = mac_bytes("01:00:5e:00:17:aa")
"""The destination of NDN frames on Ethernet, as NFD has it."""
HOP_LIMIT = 32

MOST_COMPONENTS = 8
MOST_COMPONENT_BYTES = 32
"""Of names that a router can hold."""

INSERT, DELETE, DISTRIBUTE = generic("insert"), generic("delete"), generic("distribute")
"""First components that routers know."""


def job_component(asked: str, job: int) -> str:
    """Return the first component of a job's names, made of the requested one and the job's number.

    No two jobs have the same, so that none gets what routers keep, or still carry, of another: the numbers of jobs
    are given out once.
    """
    return f"{asked}-{job}"


DISSECTED = {
    "ETHER_TYPE": ETHER_TYPE,
    "INTEREST": tlv.INTEREST,
    "DATA": tlv.DATA,
    "NAME": tlv.NAME,
    "GENERIC": tlv.GENERIC,
    "SEGMENT": tlv.SEGMENT,
    "VERSION": tlv.VERSION,
    "CAN_BE_PREFIX": tlv.CAN_BE_PREFIX,
    "MUST_BE_FRESH": tlv.MUST_BE_FRESH,
    "NONCE": tlv.NONCE,
    "LIFETIME": tlv.LIFETIME,
    "HOP_LIMIT": tlv.HOP_LIMIT,
    "CONTENT": tlv.CONTENT,
}
"""What the dissector has to know (wireshark/ndn.lua)."""
