"""In every run of every system, what came to a switch left it or was counted there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gradbed.emulation.backend import VirtualBackend
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.chaos import FILE, with_chaos
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.systems import find_system, studies_folder


def run(system: str, folder: Path) -> TrialResult:
    """The trial of the system's chaos.yaml, without a fault."""
    configuration = load_study(studies_folder(system) / FILE, clock="virtual").trials[0].configuration
    return run_trial(find_system(system), TrialTask(configuration, 1, Scale(), folder))


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("system", with_chaos())
def test_a_drop_that_was_not_is_seen(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, calls = VirtualBackend.device_statistics, count()

    def device_statistics(self: VirtualBackend) -> Mapping[str, dict[str, int]]:
        found = told(self)
        first = min(found)
        return {**found, first: {**found[first], "egress_drops": found[first]["egress_drops"] + next(calls)}}

    monkeypatch.setattr(VirtualBackend, "device_statistics", device_statistics)
    failures = run(system, tmp_path).failures
    assert any("packets came and" in line for line in failures)


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize("system", with_chaos())
def test_a_packet_that_vanishes_on_its_way_is_seen(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between switches: hosts cannot tell."""
    told, calls = VirtualBackend.link_statistics, count()

    def link_statistics(self: VirtualBackend) -> Any:
        between, more = self.topology.switch_links[0], next(calls)
        ends = between.a.node, between.b.node
        return [
            replace(row, packets=row.packets + more * ((row.from_node, row.to_node) == ends)) for row in told(self)
        ]

    monkeypatch.setattr(VirtualBackend, "link_statistics", link_statistics)
    assert any("packets came and" in line for line in run(system, tmp_path).failures)
