"""Tests of NAME.p4 on a network, for pytest; each has one of its own, on the virtual clock. docs/api.md says more."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP

import gradbed as gb

PROGRAM = Path(__file__).with_name("NAME.p4")


@pytest.fixture
def net() -> Iterator[gb.Network]:
    with gb.virtual(gb.leaf_spine(2, 2, 2), PROGRAM) as network:
        yield network


def test_hosts_reach_each_other(net: gb.Network) -> None:
    h1, h4 = net.hosts["h1"], net.hosts["h4"]
    h1.send(IP(dst=h4.ip, ttl=64) / UDP(dport=7))
    packet = h4.receive()
    assert packet is not None
    assert packet[IP].ttl == 61  # three switches on the way


def test_without_a_route_packets_are_dropped(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    net.switches["l1"].tables["routes"].delete({"dst_addr": h2.ip})
    h1.send(IP(dst=h2.ip) / UDP(dport=7))
    assert h2.receive(timeout_us=10_000) is None
    assert net.switches["l1"].counters["received"].total.packets == 1
