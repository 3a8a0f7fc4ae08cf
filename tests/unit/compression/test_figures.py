"""Every kind of figure is drawn of a small study, and its numbers are those of the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.study.definition import FigureSection
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import studies_of
from gradbed.experiments.systems.compression.figures import name_of, rate_left, scenes, variant
from tests.unit.small_study import run_study_named_small

STUDY = """
name: small
system: compression
clock: virtual
topology: {kind: "star:4"}
background: {from_ms: 1, duration_ms: 4}
workload: {kind: training, workers: 2, rounds: 2, hidden_units: 16}
sweep:
  zip:
    ratio.rule: [none, source, corrected, corrected]
    ratio.initial_rate: [iteration, iteration, iteration, run]
    transport.pacing: [none, even, even, aimd]
    transport.protocol: [packets, packets, packets, packets]
    compression.compress: [none, none, none, none]
    compression.error_feedback: [true, true, true, false]
    background.load: [0, 0, 0.5, 0]
    workload.workers: [2, 2, 2, 2]
    faults:
      - &half [{fault: link-change, link: [h1, s1], change: {rate_mbps: 50}, at_ms: 1}]
      - *half
      - *half
      - *half
metrics: [ratio]
figures:
  workers: {kind: compression-workers, x: workload.workers, y: iteration_time_s, series: transport.pacing}
  step: {kind: compression-step, x: ratio.rule, y: ratio}
  ratio: {kind: compression-ratio, x: ratio.rule, y: ratio}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results, printed = run_study_named_small(STUDY, tmp_path_factory.mktemp("small"))
    assert "at_ms 1 link-change h1, s1 rate_mbps 50" in " ".join(printed.split())
    return results


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["workers", "step", "ratio"])
def test_it_is_drawn(name: str, folder: Path) -> None:
    assert (folder / f"{name}.png").stat().st_size > 0


def test_trials_have_the_names_of_what_they_do(folder: Path) -> None:
    rows = [trial.row for trial in load_results(folder).trials]
    names = ["neither", "as published, B1/N", "corrected, B1/N", "corrected, AIMD"]
    assert [variant(row) for row in rows] == names
    assert variant({**rows[0], "transport.protocol": "tcp"}) == "kernel TCP, a sum for each worker"
    assert variant({**rows[1], "faults": []}) == "undisturbed, B1/N"
    assert len({name_of(row) for row in rows}) == 4
    slower = [{**row, "scale_factor": 0.03} for row in rows]
    assert [rate_left(row) for row in (*rows, *slower)] == [0.5] * 8


def test_the_step_has_a_row_for_each_thing_that_happens(folder: Path) -> None:
    found = scenes(load_results(folder))
    assert {scene: len(trials) for scene, trials in found.items()} == {
        "half of the link rate": 3,
        "competing traffic": 1,
    }


def test_without_a_first_repetition_there_is_no_step(folder: Path) -> None:
    results = load_results(folder)
    others = replace(results, trials=tuple(replace(trial, repetition=1) for trial in results.trials))
    section = FigureSection(kind="compression-step", x="ratio.rule", y="ratio")
    said: list[str] = []
    assert draw_figures(others, {"step": section}, {}, said.append) == []
    assert len(said) == 1


def test_without_the_kernel_the_first_study_has_no_tcp() -> None:
    path = studies_of("compression")[1]
    protocols = {
        clock: {trial.configuration.transport.protocol for trial in load_study(path, clock=clock).trials}  # type: ignore[attr-defined]
        for clock in (None, "virtual")
    }
    assert protocols == {None: {"packets", "tcp"}, "virtual": {"packets"}}
