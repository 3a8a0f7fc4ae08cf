"""Tests of one's own P4 network, for pytest: each on a network of its own on the virtual clock, in milliseconds.

./gradbed python -m pytest examples/python
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP

import gradbed as gb

HERE = Path(__file__).parent


@pytest.fixture
def net() -> Iterator[gb.Network]:
    program = gb.Program(HERE / "gate.p4", entries=HERE / "gate.yaml")
    with gb.virtual(gb.leaf_spine(2, 2, 2), program) as network:
        yield network


def test_hosts_reach_each_other(net: gb.Network) -> None:
    for sender in net.hosts.values():
        for receiver in net.hosts.values():
            if sender is not receiver:
                sender.send(IP(dst=receiver.ip) / UDP(dport=7))
                packet = receiver.receive()
                assert packet is not None and packet[IP].src == sender.ip


def test_refused_sources_reach_nobody(net: gb.Network) -> None:
    h1, h4 = net.hosts["h1"], net.hosts["h4"]
    net.switches["l1"].tables["refused"].insert({"src_addr": h1.ip}, "drop", priority=1)
    h1.send(IP(dst=h4.ip) / UDP(dport=7))
    net.settle()
    assert h4.received() == []
    assert net.switches["l1"].counters["arrived"].total.packets == 1


def test_packets_survive_a_slow_link(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    net.link("h1", "l1").change(delay_us=5000)
    h1.send(IP(dst=h2.ip) / UDP(dport=7))
    assert h2.receive(timeout_us=4000) is None
    assert h2.receive(timeout_us=4000) is not None
