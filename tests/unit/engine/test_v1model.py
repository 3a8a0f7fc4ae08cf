"""A compiled P4 program on the engine: the corners of v1model, as simple_switch documents them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from tests.unit.engine.instructed import exchange

NORMAL, INGRESS_CLONE, EGRESS_CLONE, REPLICATED = 0, 1, 2, 5
DROP, MULTICAST, MULTICAST_AND_DROP, CLONE, RESUBMIT, RECIRCULATE, EGRESS_CLONE_ALONE, TRUNCATE, FORWARD = range(9)


@dataclass(frozen=True)
class Seen:
    port: int
    instance_type: int
    packet_length: int
    ingress_port: int
    egress_rid: int
    kept: int
    forgotten: int
    kept_in_parser: int
    argument: int
    payload: bytes


def order(what: int, argument: int = 0, port: int = 2) -> bytes:
    return struct.pack("!BBH", what, argument, port) + b"payload"


@pytest.fixture(scope="module")
def program() -> BuiltProgram:
    return build_program(compile_p4(Path(__file__).parent / "programs" / "corners.p4").json)


@pytest.fixture
def switch(engine: Engine, program: BuiltProgram) -> EngineDevice:
    device = engine.add_switch(1)
    device.load(program)
    for port in (1, 2, 3):
        engine.add_open_port(1, port)
    device.replication.set_group(5, [Replica(2, 20), Replica(3, 30)])
    device.replication.set_session(7, [Replica(3, 70)])
    return device


def send(engine: Engine, frame: bytes) -> list[Seen]:
    engine.inject(1, 1, frame)
    engine.advance(0)
    seen = []
    for _, port, sent in engine.drain():
        instance, length, ingress, rid, kept, forgotten, in_parser, _ = struct.unpack("!IIHHBBBB", sent[:16])
        argument = sent[17]
        seen.append(Seen(port, instance, length, ingress, rid, kept, forgotten, in_parser, argument, sent[20:]))
    return seen


def test_forward_and_drop(engine: Engine, switch: EngineDevice) -> None:
    assert send(engine, order(FORWARD)) == [Seen(2, NORMAL, 11, 1, 0, 0, 0, 0, 0, b"payload")]
    assert send(engine, order(DROP)) == []
    assert send(engine, b"?") == []
    assert switch.statistics().ingress_drops == 2


def test_multicast(engine: Engine, switch: EngineDevice) -> None:
    assert send(engine, order(MULTICAST, 5)) == [
        Seen(2, REPLICATED, 11, 1, 20, 0, 0, 0, 5, b"payload"),
        Seen(3, REPLICATED, 11, 1, 30, 0, 0, 0, 5, b"payload"),
    ]
    # mark_to_drop takes the group back.
    assert send(engine, order(MULTICAST_AND_DROP, 5)) == []


def test_ingress_clone(engine: Engine, switch: EngineDevice) -> None:
    assert send(engine, order(CLONE, 1)) == [
        # The clone has the argument that it came with, the original the one that ingress wrote.
        Seen(3, INGRESS_CLONE, 11, 1, 70, 11, 0, 0, 1, b"payload"),
        Seen(2, NORMAL, 11, 1, 0, 11, 12, 0, 99, b"payload"),
    ]


def test_resubmit(engine: Engine, switch: EngineDevice) -> None:
    assert send(engine, order(RESUBMIT, 1)) == [Seen(2, NORMAL, 11, 1, 0, 21, 0, 21, 1, b"payload")]


@pytest.mark.parametrize("times", [1, 5, 200])
def test_recirculate(engine: Engine, switch: EngineDevice, times: int) -> None:
    assert send(engine, order(RECIRCULATE, times)) == [Seen(2, NORMAL, 11, 1, 0, times, 0, times, 0, b"payload")]
    assert switch.statistics().recirculated == times


def test_egress_clone(engine: Engine, switch: EngineDevice) -> None:
    assert send(engine, order(EGRESS_CLONE_ALONE, 1)) == [Seen(3, EGRESS_CLONE, 11, 1, 70, 41, 0, 0, 66, b"payload")]


def test_truncate(engine: Engine, switch: EngineDevice) -> None:
    assert exchange(engine, order(TRUNCATE, 6)) == [(1, 2, order(TRUNCATE, 6)[:6])]


def test_copies_take_buffers_of_their_own_size(engine: Engine, switch: EngineDevice) -> None:
    switch.replication.set_group(6, [Replica(2, instance) for instance in range(100)])
    before = engine.statistics().pool_bytes
    assert len(exchange(engine, order(MULTICAST, 6) + bytes(100))) == 100
    assert engine.statistics().pool_bytes - before < 100 * 1024
