"""Loading another program while packets are in the switch."""

from __future__ import annotations

import threading

import pytest

from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import CProgram, Egress, Ingress, exchange, instructed_program, pass_through


def test_packets_between_ingress_and_egress_are_dropped_and_counted(engine: Engine) -> None:
    device = engine.add_switch(1)
    device.load(instructed_program())
    engine.add_open_port(1, 1)
    engine.add_open_port(1, 2, LinkModel(rate_bps=8_000_000, delay_us=1000))
    for number in range(5):
        engine.inject(1, 1, pass_through(2) + bytes([number]) * 100)
    engine.advance(150)
    device.load(instructed_program())
    engine.inject(1, 1, pass_through(2) + b"new")
    engine.advance(10_000)
    # The first is propagating, the second being sent: they have left the program. Three were in the queue.
    assert [frame[:3] for *_, frame in engine.drain()] == [b"\0\0\0", b"\1\1\1", b"new"]
    assert device.statistics().swap_drops == 3


def test_recirculating_packets_are_dropped_with_their_metadata(engine: Engine, device: EngineDevice) -> None:
    engine.inject(1, 1, pass_through(2, egress=Egress.RECIRCULATE) * 1000 + b"x")
    with pytest.raises(RuntimeError, match="circles"):
        engine.advance(0, max_events=10)
    device.load(instructed_program())
    engine.advance(0)
    assert engine.drain() == []
    assert device.statistics().swap_drops == 1


def test_groups_and_sessions_go_with_the_old_program(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(1, [Replica(2)])
    device.replication.set_session(1, [Replica(3)])
    device.load(instructed_program())
    sent = exchange(engine, pass_through(2, Ingress.MULTICAST, 1) + b"x", pass_through(4, Ingress.CLONE, 1) + b"x")
    assert sent == [(1, 4, b"x")]


def test_a_program_that_cannot_be_loaded_leaves_the_old_one_running(engine: Engine, device: EngineDevice) -> None:
    broken = CProgram(instructed_program().library.parent / "missing.so", {})
    with pytest.raises(OSError):
        device.load(broken)
    assert device.program == instructed_program()
    assert exchange(engine, pass_through(2) + b"x") == [(1, 2, b"x")]


def test_other_switches_keep_their_packets(engine: Engine) -> None:
    devices = [engine.add_switch(number) for number in (1, 2)]
    for device in devices:
        device.load(instructed_program())
        engine.add_open_port(device.device_id, 1)
        engine.add_open_port(device.device_id, 2, LinkModel(rate_bps=8_000_000))
        for _ in range(3):
            engine.inject(device.device_id, 1, pass_through(2) + b"x")
    engine.advance(0)
    devices[0].load(instructed_program())
    engine.advance(10_000)
    assert [device_id for device_id, *_ in engine.drain()] == [1, 2, 2, 2]


def test_swapping_under_traffic_loses_nothing_else() -> None:
    with Engine() as engine:
        device = engine.add_switch(1)
        device.load(instructed_program())
        engine.add_open_port(1, 1, LinkModel(queue_packets=100_000))
        engine.add_open_port(1, 2, LinkModel(rate_bps=400_000_000, delay_us=20, queue_packets=100_000), seed=1)
        engine.start()
        swaps = threading.Thread(target=lambda: [device.load(instructed_program()) for _ in range(50)])
        swaps.start()
        for number in range(5000):
            engine.inject(1, 1, pass_through(2) + number.to_bytes(2, "big"))
        swaps.join()
        assert engine.quiesce(20)
        arrived = [frame for *_, frame in engine.drain()]
        assert arrived == sorted(arrived)
        assert len(arrived) + device.statistics().swap_drops == 5000
