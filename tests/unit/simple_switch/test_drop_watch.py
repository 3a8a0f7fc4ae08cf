"""Lines about dropped packets."""

from __future__ import annotations

import logging

import pytest

from gradbed.switch.engine import Engine
from gradbed.switch.engine.statistics import DeviceStatistics
from gradbed.switch.simple_switch import running
from gradbed.switch.simple_switch.running import DropWatch
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program, pass_through


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged. Not by caplog: where Mininet is imported, it replaces loggers that are made later."""
    said: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger = logging.Logger("drop watch", logging.DEBUG)
    logger.addHandler(Collect())
    monkeypatch.setattr(running, "_logger", logger)
    return said


def test_one_line_for_each_reason_and_only_for_what_is_new(lines: list[str]) -> None:
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(1)
        device.load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_open_port(1, 2, LinkModel(rate_bps=8_000, queue_packets=1))
        watch = DropWatch(engine, device)
        engine.inject(1, 1, pass_through())
        for _ in range(5):
            engine.inject(1, 1, pass_through(2) + b"x" * 100)
        engine.inject(1, 1, pass_through(99) + b"x")
        engine.advance(10)
        watch.report()
        watch.report()
        engine.inject(1, 1, pass_through())
        engine.advance(10)
        watch.report()
    assert lines == [
        "1 packet dropped: egress_spec is a port that the switch does not have",
        "1 packet dropped because egress_spec was the drop port",
        "3 packets dropped: the queue of port 2 (out) was full",
        "1 packet dropped because egress_spec was the drop port",
    ]


def test_every_kind_of_drop_has_words() -> None:
    kinds = {name for name in DeviceStatistics.__dataclass_fields__ if name.endswith("_drops")}
    # The program's own drops are told by where it drops.
    assert kinds - {"no_entry_drops", "ingress_drops", "egress_drops"} == set(running._REASONS)
