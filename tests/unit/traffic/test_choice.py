"""Which packet is to be traced."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Ether

from gradbed.common.errors import UserError
from gradbed.experiments.traffic.packet_options import packet_choice
from gradbed.topo.generators import star

TOPOLOGY = star(3)
H1, H2 = (TOPOLOGY.host(name).ip for name in ("h1", "h2"))


def first_of(text: str, *packets: Ether) -> list[int]:
    """The places of the packets that are chosen."""
    chosen = packet_choice(text, TOPOLOGY)
    return [place for place, packet in enumerate(packets) if chosen(bytes(packet))]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("nth=1", [0]),
        ("dst=h2", [1]),
        (f"dst={H2} and nth=2", [2]),
        ("src=h1 and dport=80", [3]),
        ("sport=7 and dst=h2", [2]),
        ("dport=80 and src=h2", []),
    ],
)
def test_the_nth_that_meets_all_conditions_is_chosen(text: str, places: list[int]) -> None:
    packets = (
        Ether() / ARP(),
        Ether() / IP(src=H1, dst=H2) / UDP(sport=6, dport=9),
        Ether() / IP(src=H1, dst=H2) / UDP(sport=7, dport=9),
        Ether() / IP(src=H1, dst=H1, options=[IPOption_NOP()] * 4) / TCP(dport=80),
        Ether() / IP(src=H1, dst=H1) / TCP(dport=80),
        b"\x00" * 20,
    )
    assert first_of(text, *packets) == places


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("destination=h1", "'destination=h1' is no condition"),
        ("dst", "'dst' is no condition"),
        ("dst=h7", "'h7' is no host"),
        ("nth=first", "got 'first'"),
    ],
)
def test_conditions_that_cannot_be_are_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        packet_choice(text, TOPOLOGY)
