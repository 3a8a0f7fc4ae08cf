"""The gradient packet as Scapy layers: the definition that everything else is checked against.

    Ethernet / IPv4 / UDP, destination port 0x4742, checksum 0 / Gradient, 28 bytes / lanes, int32 each

All fields are big-endian, lanes two's complement. The packet carries the whole choice of where it is summed: at the
designated switch `switch_number` with the gradients of `fan_in` workers, then, as a sum or because that switch could
not take it, at `next_switch` with those of `next_fan_in` workers; 0 stands for none. The UDP source port repeats
switch_number for switches that can match nothing deeper, and is 0x4742 when there is none and in ACKs of the
server. Import this module and Scapy dissects such packets by itself (sniff, rdpcap).
"""

from __future__ import annotations

from collections.abc import Sequence

from scapy.fields import (
    ByteField,
    FlagsField,
    IntField,
    LongField,
    ShortField,
    SignedIntField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from hosts.protocols.datagram_format import ECT_0
from hosts.protocols.lanes_field import LanesField
from hosts.systems.aggregation.gradient_format import UDP_PORT, VERSION, Flags


class Gradient(Packet):  # type: ignore[misc]
    """One fragment of a gradient, of a partial sum (PARTIAL) or of the global sum (ACK), or a request (NACK).

    magnitude: no lane's absolute value is larger. On an ACK: the global sum is lane * 2^magnitude.
    """

    name = "Gradient"
    fields_desc = [  # noqa: RUF012 - Scapy's own idiom
        ByteField("version", VERSION),
        FlagsField("flags", 0, 8, {flag.value: flag.name for flag in Flags}),
        ShortField("job", 0),
        IntField("packet_number", 0),
        ShortField("switch_number", 0),
        ShortField("fan_in", 0),
        ShortField("next_switch", 0),
        ShortField("next_fan_in", 0),
        LongField("worker_bitmap", 0),
        IntField("magnitude", 0),
        LanesField("lanes", [], SignedIntField("lane", 0)),
    ]


bind_bottom_up(UDP, Gradient, dport=UDP_PORT)
bind_top_down(UDP, Gradient, sport=UDP_PORT, dport=UDP_PORT, chksum=0)


def source_port(flags: int, switch_number: int) -> int:
    """The UDP source port of a packet with these flags and this designated switch."""
    return UDP_PORT if flags & Flags.ACK or switch_number == 0 else switch_number


def gradient_frame(
    *,
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    job: int,
    packet_number: int,
    worker_bitmap: int,
    lanes: Sequence[int] = (),
    flags: int = 0,
    switch_number: int = 0,
    fan_in: int = 0,
    next_switch: int = 0,
    next_fan_in: int = 0,
    magnitude: int | None = None,
    tos: int = ECT_0,
    ttl: int = 64,
) -> Packet:
    """A whole frame as agents send it; bytes() of it gives the wire format.

    magnitude: without one, the largest absolute value of the lanes, and 0 with the flag ACK.
    """
    if magnitude is None:
        magnitude = 0 if flags & Flags.ACK else max(map(abs, lanes), default=0)
    return (
        Ether(src=src_mac, dst=dst_mac)
        / IP(src=src_ip, dst=dst_ip, tos=tos, ttl=ttl, id=0, flags="DF")
        / UDP(sport=source_port(flags, switch_number), dport=UDP_PORT, chksum=0)
        / Gradient(
            flags=flags,
            job=job,
            packet_number=packet_number,
            switch_number=switch_number,
            fan_in=fan_in,
            next_switch=next_switch,
            next_fan_in=next_fan_in,
            worker_bitmap=worker_bitmap,
            magnitude=magnitude,
            lanes=list(lanes),
        )
    )
