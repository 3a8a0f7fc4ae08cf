"""p4src/compression.p4 with a clock advanced by hand: where packets go, and what is counted of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scapy.layers.inet import IP, IPOption
from scapy.layers.l2 import Ether
from scapy.utils import checksum

from gradbed.experiments.programs import P4_SOURCES
from gradbed.formats.datagram import CE, ECN_MASK
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.systems.compression.frames import HEADER_BYTES, Route, acknowledgement_frame, part_frames
from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, KeyMatch, Replica
from gradbed.switch.engine import Engine
from gradbed.switch.engine.device import EngineDevice
from gradbed.topo.link import LinkModel

SWITCH, WORKER, SERVER, OTHER = 1, 0, 1, 2
RATE_BPS = 10_000_000
GROUP_IP = 0xEF420010
OWN = AgentAddress(name="h2", ip="10.0.0.2", mac="02:00:00:00:00:02", gateway_mac="02:00:00:00:01:00")
ROUTE = Route(7, OWN, "10.0.0.1", OWN.gateway_mac)


@dataclass
class Switch:
    engine: Engine
    device: EngineDevice

    def after(self, *frames: bytes, port: int = WORKER) -> dict[int, list[bytes]]:
        """What leaves by each port once these have come at the same moment."""
        for frame in frames:
            self.engine.inject(SWITCH, port, frame)
        self.engine.advance(1_000_000)
        out: dict[int, list[bytes]] = {}
        for _, left_by, frame in self.engine.drain():
            out.setdefault(left_by, []).append(frame)
        return out

    def mark_above(self, threshold: int) -> None:
        """On the way to the server, if so many packets wait there."""
        call = ActionCall("CompressionEgress.congestion.mark_above", (threshold,))
        self.device.state.tables.insert(
            "CompressionEgress.congestion.congestion_thresholds", [KeyMatch(SERVER)], call, 0
        )

    def counted(self, name: str) -> dict[int, tuple[int, int]]:
        cells = self.device.state.counters.read_all(f"Compression{name}")
        return {index: cell for index, cell in enumerate(cells) if cell != (0, 0)}


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = build_program(compile_p4(P4_SOURCES / "compression.p4").json)
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(SWITCH)
        for port in (WORKER, OTHER):
            engine.add_open_port(SWITCH, port)
        engine.add_open_port(SWITCH, SERVER, LinkModel(rate_bps=RATE_BPS))
        device.load(program)
        device.state.tables.insert(
            "CompressionIngress.forwarding.ipv4_routes",
            [KeyMatch(0x0A000001, prefix_bits=32)],
            ActionCall("CompressionIngress.forwarding.forward", (SERVER, 0x020000000001)),
            0,
        )
        device.replication.set_group(16, [Replica(WORKER, 0), Replica(OTHER, 0)])
        device.state.tables.insert(
            "CompressionIngress.forwarding.multicast_routes",
            [KeyMatch(GROUP_IP)],
            ActionCall("CompressionIngress.forwarding.replicate", (16,)),
            0,
        )
        yield Switch(engine, device)


def parts(count: int, route: Route = ROUTE) -> list[bytes]:
    made = written(Content(count * 352, np.arange(1, count * 352 + 1)), HEADER_BYTES)
    return [frame.tobytes() for frame in part_frames(route, made, 0, 0)]


def test_parts_reach_their_server_as_they_were(switch: Switch) -> None:
    sent = parts(2)
    found = switch.after(*sent)
    assert list(found) == [SERVER]
    for before, after in zip(sent, found[SERVER], strict=True):
        expected = Ether(before)
        expected.src, expected.dst = OWN.gateway_mac, "02:00:00:00:00:01"
        expected[IP].ttl = 63
        del expected[IP].chksum
        assert after == bytes(expected)
    size = sum(map(len, sent))
    assert switch.counted("Ingress.arrivals.part_in") == {WORKER: (2, size)}
    assert switch.counted("Egress.departures.part_out") == {SERVER: (2, size)}


def test_acknowledgements_are_counted_apart(switch: Switch) -> None:
    frame = acknowledgement_frame(ROUTE, 1, 0, congested=False)[0].tobytes()
    assert list(switch.after(frame)) == [SERVER]
    assert switch.counted("Ingress.arrivals.acknowledgement_in") == {WORKER: (1, len(frame))}
    assert switch.counted("Egress.departures.acknowledgement_out") == {SERVER: (1, len(frame))}
    assert switch.counted("Ingress.arrivals.part_in") == {}


def test_sums_go_to_all_workers(switch: Switch) -> None:
    (frame,) = parts(1, Route(7, OWN, "239.66.0.16", "01:00:5e:42:00:10"))
    assert {port: len(frames) for port, frames in switch.after(frame, port=SERVER).items()} == {WORKER: 1, OTHER: 1}


@pytest.mark.parametrize("threshold", [None, 1, 3, 6])
def test_queues_are_watched_and_long_ones_marked(switch: Switch, threshold: int | None) -> None:
    """The first is sent at once and the second waits alone, so packet n finds n - 1 others."""
    if threshold is not None:
        switch.mark_above(threshold)
    found = switch.after(*parts(8))[SERVER]
    marked = [threshold is not None and n - 1 >= threshold for n in range(8)]
    assert [Ether(frame)[IP].tos & ECN_MASK == CE for frame in found] == marked
    sizes = [len(frame) for frame, is_marked in zip(found, marked, strict=True) if is_marked]
    assert switch.counted("Egress.queue.marked") == ({SERVER: (len(sizes), sum(sizes))} if sizes else {})
    register = "CompressionEgress.queue.longest_queue"
    assert switch.device.state.registers.read_all(register)[:3] == [0, 6, 0]
    switch.after(*parts(2))
    assert switch.device.state.registers.read(register, SERVER) == 6


@pytest.mark.parametrize(
    ("cause", "change"),
    [
        (1, {"chksum": 1}),
        (1, {"options": IPOption(b"\x01\x01\x01\x01")}),
        (2, {"ttl": 1}),
        (3, {"dst": "10.9.9.9"}),
    ],
)
def test_the_cause_of_every_drop_is_counted(switch: Switch, cause: int, change: dict[str, object]) -> None:
    frame = Ether() / IP(**{"src": "10.0.0.2", "dst": "10.0.0.1", **change})
    assert switch.after(bytes(frame)) == {}
    assert list(switch.counted("Ingress.drops.drops")) == [cause]


def test_options_are_dropped_although_the_checksum_of_the_rest_is_right(switch: Switch) -> None:
    """As of a program that does not read them."""
    frame = bytearray(bytes(Ether() / IP(src="10.0.0.2", dst="10.0.0.1", options=IPOption(b"\x01\x01\x01\x01"))))
    frame[24:26] = bytes(2)
    frame[24:26] = checksum(bytes(frame[14:34])).to_bytes(2, "big")
    assert switch.after(bytes(frame)) == {}
    assert list(switch.counted("Ingress.drops.drops")) == [1]


def test_what_is_no_ipv4_is_dropped(switch: Switch) -> None:
    assert switch.after(bytes(Ether(type=0x0806)) + bytes(46)) == {}
    assert list(switch.counted("Ingress.drops.drops")) == [1]
