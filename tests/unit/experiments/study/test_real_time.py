"""Points of a study on the virtual clock that are repeated in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.plotting.series import draw_series
from gradbed.experiments.plotting.style import figure
from gradbed.experiments.records.results import StudyResults, load_results
from gradbed.experiments.records.run_folder import RunFiles, RunFolder, StoredPoint
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
    """Of points that never ran."""
    planned = plan(study, Scale(0.5))
    run = RunFolder(folder, study.name)
    write_description(run, study, planned, Scale(0.5))
    for item in planned:
        row = {"heads": 3.0, "verdict": "valid", "clock": item.point.configuration.clock}
        RunFiles(run.path).write(StoredPoint(item.digest, item.point.seed, row, {}, {}, []))
    return load_results(run.path)


def test_the_same_share_of_different_points_is_repeated_every_time(file: Path) -> None:
    points = load_study(file).points
    repeated = [point for point in points if point.other_clock]
    assert [point.configuration.clock for point in points] == ["virtual"] * 20 + ["real"] * 2
    assert all("real time" in point.label for point in repeated)
    # `ignored` means nothing, so there are ten different points.
    originals = {(point.coordinates["coins.bias"], point.seed) for point in repeated}
    assert len(originals) == 2
    assert load_study(file).points == points


@pytest.mark.parametrize(("quick", "clock"), [(True, None), (False, "virtual")])
def test_neither_quick_nor_on_the_virtual_clock_alone(file: Path, quick: bool, clock: str | None) -> None:
    assert not any(point.other_clock for point in load_study(file, quick, clock).points)


def test_they_stand_beside_the_results_and_are_drawn_as_open_diamonds(file: Path, tmp_path: Path) -> None:
    results = made_up(load_study(file), tmp_path)
    assert len(results.points) == 20
    assert [point.row["clock"] for point in results.other_clock] == ["real"] * 2
    series = results.series("coins.bias", "heads")[None]
    assert [len(point.values) for point in series] == [4] * 5
    assert sum(len(point.other_clock) for point in series) == 2
    with figure() as (_, [axes]):
        draw_series(axes, series, label="heads", number=0)
        diamonds = [line for line in axes.lines if line.get_marker() == "D"]
        drawn = [(x, y) for line in diamonds for x, y in zip(*line.get_data(), strict=True)]
        assert drawn == [(point.x, value) for point in series for value in point.other_clock]
        assert all(line.get_markerfacecolor() == "none" for line in diamonds)
