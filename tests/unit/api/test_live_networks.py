"""Networks that a program has in its hands, on the virtual clock: what packets do shows what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import Ether

import gradbed as gb

GATE = Path(__file__).resolve().parents[3] / "examples" / "python" / "gate.p4"
ENTRIES = {
    "tables": {
        "routes": [
            {"routes": "shortest", "match": {"dst_addr": "$dst_ip"}, "action": "forward", "params": {"port": "$port"}}
        ]
    }
}
LINKS = {"rate_mbps": 100, "delay_us": 50}


@pytest.fixture
def net() -> Iterator[gb.Network]:
    with gb.virtual(gb.star(3, **LINKS), gb.Program(GATE, entries=ENTRIES)) as network:
        yield network


def datagram(to: gb.Host, port: int = 7) -> Any:
    return IP(dst=to.ip) / UDP(sport=5, dport=port) / bytes(58)


def test_a_packet_takes_the_time_that_its_links_take(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    assert net.now_us == 0
    h1.send(datagram(h2))
    packet = h2.receive()
    assert packet is not None
    assert (packet[Ether].src, packet[IP].src, packet[UDP].dport) == (h1.mac, h1.ip, 7)
    # 100 bytes twice at 100 Mbit/s, and 50 us twice.
    assert net.now_us == round(packet.time * 1e6) == 2 * (8 + 50)
    assert h2.received() == []


def test_time_goes_on_in_calls_alone(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    h1.send([datagram(h2, port) for port in (1, 2, 3)])
    assert h2.received() == []
    net.wait(115)
    assert h2.received() == []
    net.wait(2)
    assert [packet[UDP].dport for packet in h2.received()] == [1]
    assert net.settle()
    assert [packet[UDP].dport for packet in h2.received()] == [2, 3]
    before_us = net.now_us
    assert h2.receive(timeout_us=5000) is None
    assert net.now_us == before_us + 5000


def test_packets_that_are_not_meant_are_left_out(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    h1.send([IP(dst=h2.ip) / ICMP(), bytes(Ether(dst=h2.mac, src=h1.mac) / IP(dst=h2.ip, src="9.9.9.9") / UDP())])
    packet = h2.receive(where=lambda packet: UDP in packet)
    assert packet is not None and packet[IP].src == "9.9.9.9"


def test_tables_are_what_was_written_last(net: gb.Network) -> None:
    h1, h2, h3 = net.hosts.values()
    table = net.switches["s1"].tables["routes"]
    assert (table.name, len(table)) == ("Gate.routes", 3)

    def arrives() -> list[str]:
        h1.send(datagram(h2))
        net.settle()
        return [host.name for host in (h1, h2, h3) if host.received()]

    assert arrives() == ["h2"]
    table.modify({"dst_addr": h2.ip}, "forward", {"port": 3})
    assert arrives() == ["h3"]
    table.delete({"dst_addr": h2.ip})
    assert arrives() == []
    table.insert({"hdr.ipv4.dst_addr": "10.0.0.2/31"}, "Gate.forward", {"port": "0b10"})
    assert arrives() == ["h2"]
    (entry,) = (entry for entry in table.entries if entry["params"] == {"port": 2})
    assert entry["match"] == {"hdr.ipv4.dst_addr": "10.0.0.2/31"}
    table.clear()
    assert (len(table), arrives()) == (0, [])
    table.insert(**entry)
    assert arrives() == ["h2"]
    table.clear()
    table.set_default("forward", {"port": 1})
    assert arrives() == ["h1"]


def test_priorities_decide(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    table = net.switches["s1"].tables["refused"]
    with pytest.raises(gb.UserError, match="give priority, the highest wins"):
        table.insert({"src_addr": h1.ip}, "drop")
    table.insert({}, "drop", priority=1)
    h1.send(datagram(h2))
    assert h2.receive(timeout_us=1000) is None
    table.insert({"src_addr": f"{h1.ip}/32"}, "NoAction", priority=2)
    h1.send(datagram(h2))
    assert h2.receive() is not None
    with pytest.raises(gb.UserError, match="no entry with this match"):
        table.delete({"src_addr": "1.2.3.4"})
    table.insert({}, "NoAction", priority=3)
    with pytest.raises(gb.UserError, match="has 2 entries with this match: give priority"):
        table.delete({})
    table.delete({}, priority=1)
    assert sorted(entry["priority"] for entry in table.entries) == [2, 3]


def test_registers_and_counters_are_those_of_the_packets(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    switch = net.switches["s1"]
    register, counter = switch.registers["last_udp_port"], switch.counters["arrived"]
    h1.send([datagram(h2, 1234), datagram(h2, 4321)])
    net.settle()
    assert (register[1], register[2], len(register)) == (4321, 0, 16)
    assert (counter[1], counter[2], counter.total) == ((2, 200), (0, 0), (2, 200))
    assert counter[1].bytes == 200
    register[1] = 5
    assert register[1] == 5
    h1.send(datagram(h2, 99))
    net.settle()
    assert register[1] == 99
    register[1] = 5  # what the program has changed is written again
    register[3] = 6
    assert list(register)[:5] == [0, 5, 0, 6, 0]
    register.fill(8)
    assert set(register) == {8}
    with pytest.raises(gb.UserError, match="has 16 cells, and so no cell 16"):
        register[16] = 1
    with pytest.raises(gb.UserError, match="has 16 cells, and so no cell 16"):
        register[16]


def test_other_sections_of_entries(net: gb.Network) -> None:
    h1, h2, h3 = net.hosts.values()
    net.switches["s1"].write({"multicast": {7: [2, 3]}, "registers": {"last_udp_port": {4: 9}}})
    net.switches["s1"].tables["routes"].insert({"dst_addr": "224.0.0.1"}, "copy", {"group": 7})
    h1.send(IP(dst="224.0.0.1") / UDP())
    net.settle()
    assert [len(host.received()) for host in (h1, h2, h3)] == [0, 1, 1]
    assert net.switches["s1"].registers["last_udp_port"][4] == 9
    assert len(net.switches["s1"].tables["routes"]) == 4


def test_what_switches_tell_their_controller(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    h1.send(datagram(h2))
    net.settle()
    net.wait(100)
    ((switch, message),) = net.messages()
    assert (switch, message.name) == ("s1", "seen_t")
    assert [dict(entry) for entry in message.entries] == [{"src_addr": 0x0A000002, "port": 1}]
    assert net.messages() == []


def test_links_fail_and_change(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    link = net.link("s1", "h2")
    link.down()
    h1.send(datagram(h2))
    assert h2.receive(timeout_us=10_000) is None
    link.up()
    link.change(delay_us=5000, rate_mbps=1)
    begun_us = net.now_us
    h1.send(datagram(h2))
    assert h2.receive() is not None
    assert net.now_us - begun_us == 8 + 50 + 800 + 5000
    counted = net.links.set_index(["from", "to"])["packets"]
    assert (counted["h1", "s1"], counted["s1", "h2"]) == (2, 1)
    assert len(net.switches["s1"].tables["routes"]) == 3


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda net: net.hosts["h9"], "the network has no host 'h9'; there are: h1, h2, h3"),
        (lambda net: net.link("h1", "h2"), "star:3 has no link between 'h1' and 'h2'"),
        (lambda net: net.link("h1", "s1").change(loss=2), "link loss is a probability in [0, 1), got 2"),
        (lambda net: net.link("h1", "s1").change(los=0), "a link has no 'los'; did you mean 'loss'?"),
        (lambda net: net.hosts["h1"].send("x"), "a packet of Scapy or bytes are expected, got 'x'"),
        (
            lambda net: net.hosts["h1"].run("ping h2"),
            "hosts on the virtual clock run no programs: take a network on the real clock",
        ),
        (
            lambda net: net.switches["s1"].tables["routs"],
            "the program of s1 has no table 'routs'; did you mean 'routes'?",
        ),
        (
            lambda net: net.switches["s1"].tables["routes"].insert({"dst_addr": "10.0.0.2"}, "forward", {"port": 1}),
            "Gate.routes has an entry with this match already: modify it",
        ),
        (
            lambda net: net.switches["s1"].tables["routes"].insert({"dst_addr": "1.2.3.4"}, "forward"),
            "action Gate.forward lacks port",
        ),
        (
            lambda net: net.switches["s1"].tables["routes"].insert({"dst_addr": 1 << 32}, "forward", {"port": 1}),
            "4294967296 does not fit hdr.ipv4.dst_addr, which has 32 bits",
        ),
    ],
)
def test_mistakes_are_one_line(net: gb.Network, wrong: Callable[[gb.Network], object], line: str) -> None:
    with pytest.raises(gb.UserError) as told:
        wrong(net)
    assert str(told.value) == line


def test_what_cannot_come_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.p4").write_text("control\n")
    with (
        pytest.raises(gb.UserError, match=r"bad\.p4:2:1: error: expected the name"),
        gb.virtual(gb.star(2), tmp_path / "bad.p4"),
    ):
        pass
    with pytest.raises(gb.UserError, match="which program"), gb.virtual(gb.star(2)):
        pass
    with pytest.raises(gb.UserError, match="clock: must be one of 'real', 'virtual'"):
        gb.up(gb.star(2), GATE, clock="vrtual").__enter__()
    with (
        pytest.raises(gb.UserError, match="the P4 program has no table 'rutes'"),
        gb.virtual(gb.star(2), gb.Program(GATE, entries={"tables": {"rutes": [{}]}})),
    ):
        pass
