"""Links that are cut: their ports are down, and packets are lost."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program, pass_through


@pytest.fixture
def engine() -> Engine:
    """Ports 1 of switches 0 and 1 linked; port 2 of each open."""
    engine = Engine(manual_clock=True)
    for number in range(2):
        engine.add_switch(number, f"s{number}").load(instructed_program())
        engine.add_open_port(number, 2)
    engine.add_link((0, 1), (1, 1), LinkModel(delay_us=10), 0)
    return engine


def received(engine: Engine) -> list[tuple[int, int, bytes]]:
    """What comes of one frame in each direction."""
    for number in range(2):
        engine.inject(number, 2, pass_through(1) + pass_through(2) + bytes([number]))
    engine.advance(100)
    return sorted(engine.drain())


def test_a_link_between_switches(engine: Engine) -> None:
    both = [(0, 2, b"\x01"), (1, 2, b"\x00")]
    assert received(engine) == both
    engine.set_link_up(1, 1, False)
    assert received(engine) == []
    rows = [row for row in engine.link_statistics() if row.port == 1]
    assert [(row.packets, row.losses, row.queue_drops) for row in rows] == [(1, 1, 0)] * 2
    # The other end mends it as well.
    engine.set_link_up(0, 1, True)
    assert received(engine) == both


def test_what_is_on_its_way_arrives(engine: Engine) -> None:
    engine.inject(0, 2, pass_through(1) + pass_through(2) + b"early")
    engine.advance(5)
    engine.set_link_up(0, 1, False)
    engine.advance(100)
    assert engine.drain() == [(1, 2, b"early")]


def test_an_open_port(engine: Engine) -> None:
    engine.set_link_up(0, 2, False)
    assert received(engine) == []
    engine.set_link_up(0, 2, True)
    assert len(received(engine)) == 2


@pytest.mark.parametrize("port", [3, 510])
def test_ports_without_link(engine: Engine, port: int) -> None:
    with pytest.raises(UserError, match=f"port {port} of switch s0 has no link to be cut"):
        engine.set_link_up(0, port, False)
