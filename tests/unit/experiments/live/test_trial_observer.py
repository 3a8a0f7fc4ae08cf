"""What somebody who looks on is told, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.phases import Phase
from gradbed.experiments.runtimes.virtual import VirtualMonitor, VirtualRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from tests.unit.experiments.virtual_trials import configuration


class Notes(TrialObserver):
    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def measuring(self) -> Iterator[None]:
        self.lines.append("measuring")
        yield
        self.lines.append("measured")

    def on_phase_start(self, phase: Phase, jobs: Sequence[int]) -> None:
        self.lines.append("begins")

    def on_agent_event(self, event: Mapping[str, Any]) -> None:
        if self.lines[-1] != "told":
            self.lines.append("told")

    def on_phase_end(self, phase: Phase) -> None:
        self.lines.append("ended")

    def on_network_stop(self) -> None:
        self.lines.append("goes")


def test_all_that_a_meter_sees_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()

    class Meter(VirtualMonitor):
        def __enter__(self) -> Meter:
            notes.lines.append("meter")
            return self

        def __exit__(self, *exception: object) -> None:
            notes.lines.append("read")

    monkeypatch.setattr(VirtualRuntime, "meter", lambda self: Meter())
    two = configuration(workload={"rounds": 2, "baselines": ["parameter-server"]})
    run_single_trial("aggregation", two, Scale(), observer=notes)
    phase = ["measuring", "meter", "begins", "told", "read", "measured", "ended"]
    assert notes.lines == [*phase, *phase, "goes"]
