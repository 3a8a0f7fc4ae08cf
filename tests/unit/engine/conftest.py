from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradbed.switch.engine import Engine, EngineDevice
from tests.unit.engine.instructed import instructed_program


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Time stands still but for engine.advance. At the end nothing may be left of any packet."""
    with Engine(manual_clock=True) as engine:
        yield engine
        engine.drain()
        assert engine.quiesce()
        assert engine.statistics().live_packets == 0


@pytest.fixture
def device(engine: Engine) -> EngineDevice:
    """Switch 1 runs the instructed program; ports 1 to 4 are open and perfect."""
    device = engine.add_switch(1, "s1")
    device.load(instructed_program())
    for port in range(1, 5):
        engine.add_open_port(1, port)
    return device
