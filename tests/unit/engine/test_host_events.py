"""Packet-in, packet-out, digests and log lines."""

from __future__ import annotations

import logging
import queue
import threading

import pytest

from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from tests.unit.engine.instructed import Egress, Ingress, instructed_program, pass_through, read_report

CPU_PORT = 510
EIGHT_BIT_CPU_PORT = 200


def test_packet_out_enters_ingress_on_the_cpu_port(engine: Engine, device: EngineDevice) -> None:
    device.packet_out(pass_through(2, egress=Egress.REPORT) + b"from the controller")
    engine.advance(0)
    [(_, port, frame)] = engine.drain()
    report = read_report(frame)
    assert (port, report.ingress_port, report.payload) == (2, CPU_PORT, b"from the controller")
    assert device.statistics().packet_outs == 1


def test_packet_in_is_what_egress_and_deparser_made(engine: Engine) -> None:
    device = engine.add_switch(3, cpu_port=EIGHT_BIT_CPU_PORT)
    device.load(instructed_program())
    engine.add_open_port(3, 1)
    received: list[bytes] = []
    device.on_packet_in(received.append)
    engine.inject(3, 1, pass_through(EIGHT_BIT_CPU_PORT, egress=Egress.REPORT) + b"to the controller")
    engine.advance(0)
    [frame] = received
    assert read_report(frame).egress_port == EIGHT_BIT_CPU_PORT
    assert read_report(frame).payload == b"to the controller"
    assert engine.drain() == []


def test_the_cpu_port_can_be_a_replica(engine: Engine, device: EngineDevice) -> None:
    received: list[bytes] = []
    device.on_packet_in(received.append)
    device.replication.set_group(1, [Replica(CPU_PORT), Replica(2)])
    engine.inject(1, 1, pass_through(ingress=Ingress.MULTICAST, argument=1) + b"both")
    engine.advance(0)
    assert received == [b"both"]
    assert engine.drain() == [(1, 2, b"both")]


def test_nobody_listens_any_more_after_none(engine: Engine, device: EngineDevice) -> None:
    received: list[bytes] = []
    device.replication.set_group(1, [Replica(CPU_PORT)])
    for callback in (received.append, None):
        device.on_packet_in(callback)
        engine.inject(1, 1, pass_through(ingress=Ingress.MULTICAST, argument=1) + b"x")
        engine.advance(0)
    assert received == [b"x"]
    assert device.statistics().packet_ins == 2


def test_listeners_stay_when_another_program_is_loaded(engine: Engine, device: EngineDevice) -> None:
    received: list[tuple[int, tuple[int, ...]]] = []
    device.on_digest(lambda list_id, words: received.append((list_id, words)))
    device.load(instructed_program())
    engine.inject(1, 4, pass_through(2, Ingress.DIGEST, 99))
    engine.advance(0)
    assert received == [(5, (99, 4))]


def test_log_lines_go_to_the_logger(engine: Engine, device: EngineDevice, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="gradbed.switch.p4"):
        device.load(instructed_program())
        engine.inject(1, 1, pass_through(2, Ingress.LOG))
        engine.advance(0)
    assert caplog.messages == ["s1: logged by the program"]


def test_a_callback_that_raises_does_not_stop_the_next(
    engine: Engine, device: EngineDevice, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def callback(list_id: int, words: tuple[int, ...]) -> None:
        seen.append(words[0])
        raise ValueError("a bug in the controller")

    device.on_digest(callback)
    for number in (1, 2):
        engine.inject(1, 1, pass_through(2, Ingress.DIGEST, number))
    engine.advance(0)
    assert seen == [1, 2]
    assert caplog.text.count("a bug in the controller") >= 2


def test_a_flood_of_host_events_is_cut_off_and_counted(engine: Engine, device: EngineDevice) -> None:
    received: list[tuple[int, ...]] = []
    device.on_digest(lambda _, words: received.append(words))
    for _ in range(9000):
        engine.inject(1, 1, pass_through(2, Ingress.DIGEST))
    engine.advance(0)
    assert len(received) == 8192
    assert device.statistics().host_event_drops == 9000 - 8192


def test_with_the_thread_host_events_come_from_another_one() -> None:
    arrived: queue.Queue[tuple[str, bytes]] = queue.Queue()
    with Engine() as engine:
        device = engine.add_switch(1, cpu_port=EIGHT_BIT_CPU_PORT)
        device.load(instructed_program())
        device.on_packet_in(lambda frame: arrived.put((threading.current_thread().name, frame)))
        engine.start()
        for number in range(100):
            device.packet_out(pass_through(EIGHT_BIT_CPU_PORT) + bytes([number]))
        got = [arrived.get(timeout=10) for _ in range(100)]
    assert [frame[0] for _, frame in got] == list(range(100))
    assert {name for name, _ in got} == {"host events"}


def test_a_callback_may_call_the_engine() -> None:
    answers: queue.Queue[bool] = queue.Queue()
    with Engine() as engine:
        device = engine.add_switch(1, cpu_port=EIGHT_BIT_CPU_PORT)
        device.load(instructed_program())
        engine.add_open_port(1, 1)

        def callback(frame: bytes) -> None:
            device.replication.set_group(1, [Replica(1)])
            device.packet_out(pass_through(1) + frame)
            answers.put(engine.quiesce(10))

        device.on_packet_in(callback)
        engine.start()
        device.packet_out(pass_through(EIGHT_BIT_CPU_PORT) + b"ping")
        assert answers.get(timeout=20)
        assert engine.drain() == [(1, 1, b"ping")]
