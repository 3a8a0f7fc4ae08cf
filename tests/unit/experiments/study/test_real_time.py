"""Trials of a study on the virtual clock that are repeated in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.plotting.series import draw_series
from gradbed.experiments.plotting.style import figure
from gradbed.experiments.results.run_folder import RunFiles, RunFolder, TrialRecord
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.runner import plan, write_description
from tests.unit.experiments.study import coin  # noqa: F401  # registers the system

STUDY = """
name: tosses
system: coins
clock: virtual
coins: {count: 20}
sweep:
  product:
    coins.bias: [0.1, 0.2, 0.3, 0.4, 0.5]
    coins.ignored: [0, 1]
repetitions: 2
real_time: {share: 0.2}
quick: {repetitions: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def made_up(study: Study, folder: Path) -> StudyResults:
    """Of trials that never ran."""
    planned = plan(study, Scale(0.5))
    run = RunFolder(folder, study.name)
    write_description(run, study, planned, Scale(0.5))
    for item in planned:
        row = {"heads": 3.0, "verdict": "valid", "clock": item.configuration.clock}
        RunFiles(run.path).write(TrialRecord(item.digest, item.seed, row, {}, {}, []))
    return load_results(run.path)


def test_the_same_share_of_different_trials_is_repeated_every_time(file: Path) -> None:
    trials = load_study(file).trials
    repeated = [trial for trial in trials if trial.other_clock]
    assert [trial.configuration.clock for trial in trials] == ["virtual"] * 20 + ["real"] * 2
    assert all("real time" in trial.label for trial in repeated)
    # `ignored` means nothing, so there are ten different trials.
    originals = {(trial.coordinates["coins.bias"], trial.seed) for trial in repeated}
    assert len(originals) == 2
    assert load_study(file).trials == trials


@pytest.mark.parametrize(("quick", "clock"), [(True, None), (False, "virtual")])
def test_neither_quick_nor_on_the_virtual_clock_alone(file: Path, quick: bool, clock: str | None) -> None:
    assert not any(trial.other_clock for trial in load_study(file, quick, clock).trials)


def test_they_stand_beside_the_results_and_are_drawn_as_open_diamonds(file: Path, tmp_path: Path) -> None:
    results = made_up(load_study(file), tmp_path)
    assert len(results.trials) == 20
    assert [trial.row["clock"] for trial in results.other_clock] == ["real"] * 2
    series = results.series("coins.bias", "heads")[None]
    assert [len(trial.values) for trial in series] == [4] * 5
    assert sum(len(trial.other_clock) for trial in series) == 2
    with figure() as (_, [axes]):
        draw_series(axes, series, label="heads", number=0)
        diamonds = [line for line in axes.lines if line.get_marker() == "D"]
        drawn = [(x, y) for line in diamonds for x, y in zip(*line.get_data(), strict=True)]
        assert drawn == [(trial.x, value) for trial in series for value in trial.other_clock]
        assert all(line.get_markerfacecolor() == "none" for line in diamonds)
