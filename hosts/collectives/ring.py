"""The packet of ring all-reduce as a Scapy layer: the definition that everything else is checked against.

    Ethernet / IPv4 / UDP, both ports 0x4752, checksum 0 / Ring, 28 bytes / lanes, int32 each

All fields are big-endian, lanes two's complement. Every worker numbers the packets that it sends to the next worker
on the ring (sequence), which acknowledges them; round, step and fragment_number say what the lanes are. In the steps
0 to n - 2 of n workers (reduce-scatter) they are a partial sum, from step n - 1 on (all-gather) the global sum, which
is lane * 2^shift. Import this module and Scapy dissects such packets by itself (sniff, rdpcap).
"""

from __future__ import annotations

from collections.abc import Sequence

from scapy.fields import ByteField, FlagsField, IntField, ShortField, SignedIntField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from hosts.collectives.ring_format import RING_PORT, RING_VERSION, RingFlags
from hosts.protocols.datagram_format import ECT_0
from hosts.protocols.lanes_field import LanesField


class Ring(Packet):  # type: ignore[misc]
    """One fragment on its way to the next worker, or an acknowledgement on its way back.

    An ACK says that all packets before `sequence` have come, and by bit k of `selective` that packet
    sequence + 1 + k has. Its round, fragment_number, step and shift are 0.
    """

    name = "Ring"
    fields_desc = [  # noqa: RUF012 - Scapy's own idiom
        ByteField("version", RING_VERSION),
        FlagsField("flags", 0, 8, {flag.value: flag.name for flag in RingFlags}),
        ShortField("job", 0),
        IntField("sequence", 0),
        XLongField("selective", 0),
        IntField("round", 0),
        IntField("fragment_number", 0),
        ShortField("step", 0),
        ShortField("shift", 0),
        LanesField("lanes", [], SignedIntField("lane", 0)),
    ]


bind_bottom_up(UDP, Ring, dport=RING_PORT)
bind_top_down(UDP, Ring, sport=RING_PORT, dport=RING_PORT, chksum=0)


def ring_frame(
    *,
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    job: int,
    sequence: int,
    lanes: Sequence[int] = (),
    flags: int = 0,
    selective: int = 0,
    round: int = 0,
    fragment_number: int = 0,
    step: int = 0,
    shift: int = 0,
    tos: int = ECT_0,
    ttl: int = 64,
) -> Packet:
    """A whole frame as workers send it; bytes() of it gives the wire format."""
    return (
        Ether(src=src_mac, dst=dst_mac)
        / IP(src=src_ip, dst=dst_ip, tos=tos, ttl=ttl, id=0, flags="DF")
        / UDP(sport=RING_PORT, dport=RING_PORT, chksum=0)
        / Ring(
            flags=flags,
            job=job,
            sequence=sequence,
            selective=selective,
            round=round,
            fragment_number=fragment_number,
            step=step,
            shift=shift,
            lanes=list(lanes),
        )
    )
