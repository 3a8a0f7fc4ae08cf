"""Wires: links of the data plane between two network interfaces, for switches that other programs run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.utils import rdpcap

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, LinkStatistics
from gradbed.topo.link import LinkModel
from tests.emulation.engine.test_engine_veth import Bench, make_bench
from tests.emulation.programs import PATIENCE_S, eventually

pytestmark = pytest.mark.root

SENT = 30_000
FRAME = bytes.fromhex("02000000000202000000000188b5") + bytes(86)


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[Bench]:
    with make_bench() as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    for each in shared_bench.sockets:
        each.settimeout(PATIENCE_S)
    return shared_bench


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Foreign switches 1 and 2, without ports, running."""
    with Engine() as engine:
        for number in (1, 2):
            engine.add_switch(number, f"foreign{number}", cpu_port=None)
        engine.start()
        yield engine


def add_wire(bench: Bench, engine: Engine, link: LinkModel, to_host: bool = False, seed: int = 0) -> None:
    """Between s1, port 3 of switch 1, and s2, port 4 of switch 2 or a host's."""
    far = (None, None, "s2") if to_host else (2, 4, "s2")
    bench.switch.call(lambda: engine.add_wire((1, 3, "s1"), far, link, seed))


def rows(engine: Engine) -> list[LinkStatistics]:
    assert engine.quiesce(PATIENCE_S)
    return engine.link_statistics()


@pytest.mark.parametrize("to_host", [False, True])
def test_frames_cross_unchanged_in_both_directions(bench: Bench, engine: Engine, to_host: bool) -> None:
    add_wire(bench, engine, LinkModel(delay_us=100), to_host)
    bench.sockets[0].send(FRAME)
    assert bench.receive(2, 1) == [FRAME]
    for number in range(3):
        bench.sockets[1].send(FRAME + bytes([number]))
    assert bench.receive(1, 3) == [FRAME + bytes([number]) for number in range(3)]
    back = (1, 3, "in") if to_host else (2, 4, "out")
    assert [(row.device_id, row.port, row.direction, row.packets, row.bytes) for row in rows(engine)] == [
        (1, 3, "out", 1, 100),
        (*back, 3, 303),
    ]
    # Nothing of it went through a switch.
    assert engine.statistics().live_packets == 0


def test_the_link_model_holds(bench: Bench, engine: Engine) -> None:
    add_wire(bench, engine, LinkModel(loss=0.3, duplicate=0.2, rate_bps=100_000_000, queue_packets=1000), seed=7)
    for _ in range(200):
        bench.sockets[0].send(FRAME)
    assert eventually(lambda: rows(engine)[0].packets + rows(engine)[0].losses >= 200)
    there, back = rows(engine)
    assert there.packets - there.duplicates + there.losses == 200 and there.queue_drops == 0
    assert 30 < there.losses < 90 and 10 < there.duplicates < 60
    assert len(bench.receive(2, there.packets)) == there.packets
    assert (back.packets, back.losses) == (0, 0)
    # A slow one with a short queue.
    engine.set_link(1, 3, LinkModel(rate_bps=1_000_000, queue_packets=2), ["out"])
    for _ in range(100):
        bench.sockets[0].send(FRAME)
    assert eventually(lambda: rows(engine)[0].queue_drops > 50)


def test_a_wire_can_be_cut_and_captured(bench: Bench, engine: Engine, tmp_path: Path) -> None:
    add_wire(bench, engine, LinkModel())
    capture = engine.capture(tmp_path / "wire.pcap", [(1, 3, "out"), (1, 3, "in")])
    bench.sockets[0].send(FRAME)
    bench.sockets[1].send(FRAME)
    assert bench.receive(1, 1) == bench.receive(2, 1) == [FRAME]
    assert capture.close() == 2
    assert [bytes(packet) for packet in rdpcap(str(tmp_path / "wire.pcap"))] == [FRAME, FRAME]
    engine.set_link_up(2, 4, False)
    bench.sockets[0].send(FRAME)
    bench.sockets[1].send(FRAME)
    assert eventually(lambda: [row.losses for row in rows(engine)] == [1, 1])
    engine.set_link_up(1, 3, True)
    bench.sockets[0].send(FRAME)
    assert bench.receive(2, 1) == [FRAME]


def test_what_the_kernel_drops_is_counted_and_in_no_file(bench: Bench, engine: Engine, tmp_path: Path) -> None:
    """Nobody takes frames out of the sockets until more were sent than these have room for."""
    add_wire(bench, engine, LinkModel(queue_packets=1_000_000))
    capture = engine.capture(tmp_path / "wire.pcap", [(1, 3, "out")])
    engine.stop()
    frame = FRAME + bytes(1400)
    for _ in range(SENT):
        bench.sockets[0].send(frame)
    engine.start()
    assert eventually(lambda: engine.quiesce(PATIENCE_S) and _seen(engine)[0] + _seen(engine)[1] == SENT)
    received, dropped = _seen(engine)
    assert dropped > 0 and received > 0
    # At the end that they came to, which is where the link's direction begins.
    one, other = engine.interface_statistics()
    assert (one.device_id, one.port, one.direction, one.socket_drops) == (1, 3, "out", dropped)
    assert (other.device_id, other.port, other.direction) != (1, 3, "out") and other.socket_drops == 0
    assert capture.close() == received


def _seen(engine: Engine) -> tuple[int, int]:
    """Frames that came out of the sockets, and frames that the kernel dropped before."""
    statistics = engine.interface_statistics()
    return sum(each.received for each in statistics), sum(each.socket_drops for each in statistics)


def test_mistakes(bench: Bench, engine: Engine) -> None:
    with pytest.raises(UserError, match="wire between s1 and s9: there is no such interface here"):
        bench.switch.call(lambda: engine.add_wire((1, 1, "s1"), (None, None, "s9"), LinkModel(), 0))
    assert engine.interface_statistics() == []
    add_wire(bench, engine, LinkModel())
    with pytest.raises(UserError, match="port 3 of switch foreign1 or port 4 of switch foreign2 is in use already"):
        add_wire(bench, engine, LinkModel())
    with pytest.raises(UserError, match="no switch with device id 3"):
        bench.switch.call(lambda: engine.add_wire((3, 1, "s1"), (None, None, "s2"), LinkModel(), 0))
