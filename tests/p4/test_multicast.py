"""One switch with p4src/multicast.p4, packet by packet: copies by bit string, groups, routes, counters, drops.

On our switch and on BMv2, by our compiler and by p4c, where they are installed.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gradbed.controller.planning.entries import ipv4_route, multicast_route
from gradbed.controller.planning.plan import MulticastGroup, SwitchPlan, TableEntry
from gradbed.formats.shuffle import CODED_PORT, MULTICAST_IP, MULTICAST_MAC, CodedFlags
from gradbed.hosts.systems.shuffle.coded import Coded, coded_frame
from tests.emulation.sandboxed import in_sandbox
from tests.p4.behaviours import failures
from tests.p4.switch_under_test import SwitchUnderTest, on_every_pair, only, switch_under_test

pytestmark = pytest.mark.root

BITS = 64
PORTS = 5
TREE, OTHER_TREE, UNKNOWN_TREE = 7, 0xFFFF, 8
BEHIND = {1: 0b0000_0011, 2: 0b0000_0100, 3: 0b1111_1000 | 1 << 63}
"""Workers behind each port of the tree."""
GROUP_IP, GROUP_PORTS = "239.128.0.5", (2, 4)
HOST_IP, HOST_PORT = "10.0.0.2", 5
PAYLOAD = b"fragment"
HEADER = slice(42, 58)


def bift_entry(tree: int, port: int, workers: int) -> TableEntry:
    match = {"bift_id": tree, "egress_port": port}
    return TableEntry(table="bift", match=match, action="keep", params={"f_bm": workers})


def tree_entry(tree: int, group: int) -> TableEntry:
    return TableEntry(
        table="trees",
        match={"bift_id": tree},
        action="MulticastIngress.replicate_on_tree.replicate",
        params={"group": group},
    )


PLAN = SwitchPlan.of(
    "multicast",
    [
        tree_entry(TREE, 9),
        *(bift_entry(TREE, port, workers) for port, workers in BEHIND.items()),
        tree_entry(OTHER_TREE, 10),
        bift_entry(OTHER_TREE, 4, (1 << BITS) - 1),
        multicast_route(IPv4Address(GROUP_IP), 11),
        ipv4_route(IPv4Network(f"{HOST_IP}/32"), HOST_PORT, "02:00:00:00:00:aa"),
    ],
    [
        MulticastGroup(id=9, ports=tuple(BEHIND)),
        MulticastGroup(id=10, ports=(4,)),
        MulticastGroup(id=11, ports=GROUP_PORTS),
    ],
)


def coded(
    receivers: int = 0, *, tree: int = 0, flags: int = 0, dst_ip: str = MULTICAST_IP, ttl: int = 64, **header: int
) -> bytes:
    """A packet of worker 0, by bit string if it has one."""
    return bytes(
        coded_frame(
            src_mac="02:00:00:00:01:01",
            dst_mac=MULTICAST_MAC,
            src_ip="10.0.1.2",
            dst_ip=dst_ip,
            bits=BITS,
            bit_string=receivers,
            carries=PAYLOAD,
            ttl=ttl,
            flags=flags | (CodedFlags.BY_BIT_STRING if receivers or tree else 0),
            bift_id=tree,
            job=3,
            bfir_id=1,
            **header,
        )
    )


def bit_string(frame: bytes) -> int:
    return int.from_bytes(frame[58 : 58 + BITS // 8], "big")


def receivers_by_port(switch: SwitchUnderTest, frame: bytes, port: int = 5) -> dict[int, int]:
    """Who is left in the bit string of each copy; at most one leaves by each port, otherwise unchanged."""
    found = {}
    for out, frames in switch.exchange(port, frame).items():
        (copy,) = frames
        packet = Ether(copy)
        assert (packet.dst, packet[IP].ttl) == (MULTICAST_MAC, Ether(frame)[IP].ttl - 1)
        header = packet[IP].copy()
        del header.chksum
        assert IP(bytes(header)).chksum == packet[IP].chksum
        assert copy[HEADER] == frame[HEADER] and copy.endswith(PAYLOAD) and len(copy) == len(frame)
        found[out] = bit_string(copy)
    return found


def everybody_gets_one_copy(switch: SwitchUnderTest) -> None:
    every = sum(BEHIND.values())
    assert receivers_by_port(switch, coded(every, tree=TREE)) == BEHIND


def copies_without_receivers_are_pruned(switch: SwitchUnderTest) -> None:
    assert receivers_by_port(switch, coded(0b0010_0010, tree=TREE)) == {1: 0b10, 3: 0b10_0000}
    assert receivers_by_port(switch, coded(1 << 63, tree=TREE)) == {3: 1 << 63}
    pruned = {port: packets for port, (packets, _) in switch.counter("pruned").items()}
    assert pruned == {1: 1, 2: 2}


def it_never_goes_back(switch: SwitchUnderTest) -> None:
    """A packet that comes from a port of the tree has none of those behind that port left."""
    assert receivers_by_port(switch, coded(0b101, tree=TREE), port=3) == {1: 0b1, 2: 0b100}


def receivers_that_are_nowhere_get_nothing(switch: SwitchUnderTest) -> None:
    assert receivers_by_port(switch, coded(1 << 40, tree=TREE)) == {}
    assert receivers_by_port(switch, coded(0, tree=TREE)) == {}


def trees_are_told_apart(switch: SwitchUnderTest) -> None:
    assert receivers_by_port(switch, coded(0b11, tree=OTHER_TREE)) == {4: 0b11}
    assert receivers_by_port(switch, coded(0b11, tree=UNKNOWN_TREE)) == {}
    assert drops(switch) == {4: 1}


def groups_copy_whatever_the_bits(switch: SwitchUnderTest) -> None:
    out = switch.exchange(1, coded(dst_ip=GROUP_IP))
    assert {port: len(frames) for port, frames in out.items()} == dict.fromkeys(GROUP_PORTS, 1)


def hosts_are_reached_by_routes(switch: SwitchUnderTest) -> None:
    packet = Ether(only(switch.exchange(1, coded(dst_ip=HOST_IP)), HOST_PORT))
    assert (packet.dst, packet[IP].ttl) == ("02:00:00:00:00:aa", 63)
    assert switch.exchange(1, coded(dst_ip="10.9.9.9")) == {}
    assert drops(switch) == {3: 1}


def ordinary_packets_are_routed(switch: SwitchUnderTest) -> None:
    plain = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.1.2", dst=HOST_IP)
    for frame in (plain / ICMP(), plain / UDP(sport=5, dport=CODED_PORT) / Raw(b"\x02 another version of it.......")):
        assert Ether(only(switch.exchange(2, bytes(frame)), HOST_PORT))[IP].dst == HOST_IP
    assert not switch.counter("scheduled_out")


def bad_packets_are_dropped(switch: SwitchUnderTest) -> None:
    wrong_sum = bytearray(coded(0b11, tree=TREE))
    wrong_sum[25] ^= 1
    cut_short = coded(0b11, tree=TREE)[:60]
    options = Ether() / IP(dst=HOST_IP, options=b"\x01\x01\x01\x01") / UDP()
    no_ip = Ether(type=0x88B5) / Raw(bytes(46))
    for frame in (bytes(wrong_sum), cut_short, bytes(options), bytes(no_ip)):
        assert switch.exchange(5, frame) == {}
    assert drops(switch) == {1: 4}
    assert switch.exchange(5, coded(0b11, tree=TREE, ttl=1)) == {}
    assert drops(switch) == {1: 4, 2: 1}


def packets_are_counted_by_what_they_are(switch: SwitchUnderTest) -> None:
    size = len(coded())
    for frame in (
        coded(0b111, tree=TREE),
        coded(0b111, tree=TREE, fragment=1),
        coded(0b1, tree=TREE, flags=CodedFlags.LOAN),
        coded(0b10, tree=TREE, flags=CodedFlags.REPAIR),
        coded(dst_ip=HOST_IP, flags=CodedFlags.REQUEST),
    ):
        switch.exchange(5, frame)
    assert {
        name: switch.counter(name)
        for kind in ("scheduled", "transmissions", "repairs", "requests")
        for name in (f"{kind}_in", f"{kind}_out")
    } == {
        "scheduled_in": {5: (3, 3 * size)},
        "scheduled_out": {1: (3, 3 * size), 2: (2, 2 * size)},
        "transmissions_in": {5: (2, 2 * size)},
        "transmissions_out": {1: (2, 2 * size), 2: (1, size)},
        "repairs_in": {5: (1, size)},
        "repairs_out": {1: (1, size)},
        "requests_in": {5: (1, size)},
        "requests_out": {5: (1, size)},
    }


def drops(switch: SwitchUnderTest) -> dict[int, int]:
    """Packets by cause."""
    return {cause: packets for cause, (packets, _) in switch.counter("drops").items()}


@pytest.mark.thorough
@on_every_pair
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    """All of them on one switch, which gets the program anew for each."""
    with switch_under_test(kind, compiler, "multicast", {"BITS": str(BITS)}, PLAN, PORTS, tmp_path) as switch:
        assert failures(__name__, [switch], switch) == []


def test_coded_is_the_header_of_the_program() -> None:
    """p4src/include/coded.p4: 16 bytes, then the bit string."""
    assert len(bytes(Coded())) == HEADER.stop - HEADER.start
