"""Measured throughput and the bound of the linear program, on a real network."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from tests.command import tool
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]


@pytest.mark.nightly
@in_sandbox
def test_throughput_stays_below_the_bound() -> None:
    configuration = AggregationConfiguration.model_validate(
        {
            "topology": {"kind": "leaf-spine:2,1,2"},
            "switches": {"placement": "every-tor"},
            "workload": {"workers": 3, "values": 211_200, "rounds": 4, "window_fragments": 64},
        }
    )
    trial = run_single_trial("aggregation", configuration.canonical(), Scale(0.5))
    assert not trial.failures
    assert trial.row["wire_throughput_bps"] == pytest.approx(trial.row["throughput_bps"])
    # Only the upper side: how near it comes depends on how busy the machine is.
    assert 0 < trial.row["wire_throughput_bps"] / trial.row["bound_bps"] <= 1 + 1e-6


@pytest.mark.nightly
def test_throughput_reaches_four_fifths_of_the_bound(tmp_path: Path) -> None:
    ended = tool("bench", "throughput", "--scale", 0.05, "--output", tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
