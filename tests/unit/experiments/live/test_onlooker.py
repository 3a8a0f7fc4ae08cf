"""What somebody who looks on is told, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from gradbed.experiments.engine.onlooker import Onlooker
from gradbed.experiments.phases import Phase
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.execution import run_now
from gradbed.experiments.testbeds.virtual_testbed import VirtualMeter, VirtualTestbed
from tests.unit.experiments.virtual_points import configuration


class Notes(Onlooker):
    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def measuring(self) -> Iterator[None]:
        self.lines.append("measuring")
        yield
        self.lines.append("measured")

    def phase_begins(self, phase: Phase, jobs: Sequence[int]) -> None:
        self.lines.append("begins")

    def agent_told(self, event: Mapping[str, Any]) -> None:
        if self.lines[-1] != "told":
            self.lines.append("told")

    def phase_ended(self, phase: Phase) -> None:
        self.lines.append("ended")

    def network_goes(self) -> None:
        self.lines.append("goes")


def test_all_that_a_meter_sees_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()

    class Meter(VirtualMeter):
        def __enter__(self) -> Meter:
            notes.lines.append("meter")
            return self

        def __exit__(self, *exception: object) -> None:
            notes.lines.append("read")

    monkeypatch.setattr(VirtualTestbed, "meter", lambda self: Meter())
    two = configuration(workload={"rounds": 2, "baselines": ["parameter-server"]})
    run_now("aggregation", two, Scale(), onlooker=notes)
    phase = ["measuring", "meter", "begins", "told", "read", "measured", "ended"]
    assert notes.lines == [*phase, *phase, "goes"]
