"""EngineDevice as a gradbed.switch.state.device.Device: tables, counters and registers beside the data plane."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.state.device import Device
from tests.unit.engine.instructed import exchange

ROUTES, FORWARD, DROP = "MyIngress.routes", "MyIngress.forward", "MyIngress.drop"


@pytest.fixture(scope="module")
def program() -> BuiltProgram:
    return build_program(compile_p4(Path(__file__).parent / "programs" / "counting.p4").json)


def add(engine: Engine, program: BuiltProgram) -> EngineDevice:
    device = engine.add_switch(1)
    device.load(program)
    for port in (1, 2):
        engine.add_open_port(1, port)
    return device


def frame(tag: int) -> bytes:
    return tag.to_bytes(2, "big") + b"payload"


def test_it_is_a_device(engine: Engine, program: BuiltProgram) -> None:
    device: Device = add(engine, program)
    assert device.program is program
    assert device.device_id == 1


def test_entries_defaults_counters_and_registers(engine: Engine, program: BuiltProgram) -> None:
    device = add(engine, program)
    handle = device.state.tables.insert(ROUTES, [KeyMatch(7)], ActionCall(FORWARD, (2,)), 0)
    assert exchange(engine, *(frame(tag) for tag in (7, 8))) == [(1, 2, frame(7))]
    device.state.tables.modify(ROUTES, handle, ActionCall(FORWARD, (1,)))
    device.state.tables.set_default(ROUTES, ActionCall(FORWARD, (2,)))
    assert exchange(engine, *(frame(tag) for tag in (7, 8))) == [(1, 1, frame(7)), (1, 2, frame(8))]
    device.state.tables.delete(ROUTES, handle)
    device.state.tables.set_default(ROUTES, None)
    assert exchange(engine, frame(7)) == []
    assert device.state.counters.read("MyIngress.by_port", 1) == (5, 5 * 9)
    assert device.state.counters.read_all("MyIngress.by_port") == [(0, 0), (5, 45), (0, 0), (0, 0)]
    device.state.counters.write("MyIngress.by_port", 1, 1, 2)
    assert device.state.counters.read("MyIngress.by_port", 1) == (1, 2)
    assert device.state.registers.read("MyIngress.sums", 3) == 7 + 8 + 7 + 8 + 7
    device.state.registers.write("MyIngress.sums", 3, 2**32 - 1)
    engine.inject(1, 1, frame(3))
    engine.advance(0)
    assert device.state.registers.read_all("MyIngress.sums") == [0, 0, 0, 2, 0, 0, 0, 0]


def test_loading_again_starts_afresh(engine: Engine, program: BuiltProgram) -> None:
    device = add(engine, program)
    device.state.tables.insert(ROUTES, [KeyMatch(7)], ActionCall(FORWARD, (2,)), 0)
    device.state.registers.write("MyIngress.sums", 0, 5)
    device.load(program)
    assert exchange(engine, frame(7)) == []
    assert device.state.registers.read("MyIngress.sums", 0) == 0
    with pytest.raises(IndexError):
        device.state.tables.delete(ROUTES, 0)


def test_tables_change_while_packets_pass(program: BuiltProgram) -> None:
    """Nothing is lost, counted twice or sent astray while several threads change the table that packets look into."""
    with Engine() as engine:
        device = add(engine, program)
        device.state.tables.set_default(ROUTES, ActionCall(FORWARD, (2,)))
        engine.start()

        def change(first: int) -> None:
            for tag in range(first, first + 800):
                handle = device.state.tables.insert(ROUTES, [KeyMatch(tag)], ActionCall(FORWARD, (1,)), 0)
                assert device.state.counters.read("MyIngress.by_port", 2) == (0, 0)
                if tag % 2:
                    device.state.tables.delete(ROUTES, handle)

        threads = [threading.Thread(target=change, args=(first,)) for first in (10_000, 20_000)]
        for thread in threads:
            thread.start()
        for tag in range(3000):
            engine.inject(1, 1, frame(tag))
        for thread in threads:
            thread.join()
        assert engine.quiesce(20)
        assert engine.drain() == [(1, 2, frame(tag)) for tag in range(3000)]
        assert device.state.counters.read("MyIngress.by_port", 1) == (3000, 3000 * 9)
        for tag in (10_000, 10_001, 20_798, 20_799):
            engine.inject(1, 1, frame(tag))
        assert engine.quiesce(20)
        assert [port for _, port, _ in engine.drain()] == [1, 2, 1, 2]
