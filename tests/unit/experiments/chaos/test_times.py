"""Faults happen at their times after the agents have begun, also where the engine takes its time in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from gradbed.experiments.configuration.faults import fault_of_text
from gradbed.experiments.engine.faults import schedule
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale
from gradbed.topo.generators import star


class Clock:
    """Of a runtime it has the time alone."""

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us
        self.delays_us: list[int] = []

    def now_us(self) -> int:
        return self._now_us

    def call_after(self, delay_us: int, action: Callable[[], Any]) -> None:
        self.delays_us.append(delay_us)


@pytest.mark.parametrize(
    ("begun_us", "factor", "wanted_us"),
    [
        (None, 1.0, [20_000, 1_000]),
        (100_000, 1.0, [20_000, 1_000]),
        (95_000, 1.0, [15_000, 0]),
        # On links of half the rate all takes twice as long.
        (95_000, 0.5, [35_000, 0]),
    ],
)
def test_times_count_from_the_beginning(begun_us: int | None, factor: float, wanted_us: list[int]) -> None:
    topology = star(2)
    faults = [fault_of_text(text, topology) for text in ("switch-restart:s1@20", "controller-restart@1")]
    clock = Clock(100_000)
    schedule(cast(Runtime, clock), faults, Scale(factor), [1], begun_us=begun_us)
    assert clock.delays_us == wanted_us
