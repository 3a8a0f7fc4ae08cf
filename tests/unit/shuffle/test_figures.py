"""Every kind of figure is drawn of a small study, and its studies are what the system can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.study.evaluation.figures import courses
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import studies_of
from gradbed.experiments.systems.shuffle.figures import label, mean_times, networks
from gradbed.experiments.systems.shuffle.planning import below_bound
from tests.unit.small_study import run_study_named_small

STUDY = """
name: small
system: shuffle
clock: virtual
topology: {kind: "star:6"}
samples: {samples: 60, storage: 0.3}
shuffle: {shuffles: 2}
training: {train: true}
sweep:
  product:
    shuffle.scheduler: [unicast-random, unicast-nearest, hop-aware]
    samples.storage: [0.3]
    samples.first: [random]
    shuffle.threshold_us: [200]
figures:
  time: {kind: shuffle-time, x: samples.storage, y: shuffle_time_s, series: shuffle.scheduler}
  loads: {kind: bars, x: shuffle.scheduler, y: fabric_load_max_over_mean}
  waits: {kind: shuffle-waits, x: shuffle.threshold_us, y: max_wait_s}
"""


PLANNED = """
name: small
system: shuffle
clock: virtual
samples: {data: synthetic, samples: 60, storage: 0.3}
shuffle: {plan_only: true}
sweep:
  product:
    topology.kind: ["star:9", "bcube:3,1"]
    shuffle.workers: [8]
    shuffle.scheduler: [unicast-nearest, coded-master, improved]
    samples.storage: [0.3, 0.5]
    samples.samples: [60]
figures:
  hops: {kind: shuffle-hops, x: samples.storage, y: hops}
  packets: {kind: shuffle-packets, x: samples.storage, y: packets_per_sample}
  growth: {kind: shuffle-growth, x: samples.samples, y: schedule_s}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study_named_small(STUDY, tmp_path_factory.mktemp("small"))[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["time", "waits"])
def test_it_is_drawn(name: str, folder: Path) -> None:
    assert (folder / f"{name}.png").stat().st_size > 0


def test_numbers_of_figures_are_those_of_the_tables(folder: Path) -> None:
    results = load_results(folder)
    assert set(mean_times(results)) == {"unicast-random", "unicast-nearest", "hop-aware"}
    figure = load_study(studies_of("shuffle")[6]).head.figures["accuracy"]
    assert figure.course is not None
    lines = courses(results, figure.course, figure.series)
    assert {key: line.row["shuffling"] for key, line in lines.items()} == {
        ("random", False, None): "global",
        ("random", True, None): "local",
    }
    for line in lines.values():
        assert {epoch: len(found) for epoch, found in line.steps.items()} == {1: 3, 2: 3, 3: 3}


@pytest.mark.thorough
def test_schedules_alone_are_drawn_too(tmp_path: Path) -> None:
    folder = run_study_named_small(PLANNED, tmp_path)[0]
    for name in ("hops", "packets", "growth"):
        assert (folder / f"{name}.png").stat().st_size > 0
    results = load_results(folder)
    assert networks(results) == ["star:9", "bcube:3,1"]
    rows = [trial.row for trial in results.trials]
    assert len(rows) == 12 and all(row["schedule_s"] > 0 and row["verdict"] == "simulated" for row in rows)
    for row in rows:
        assert max(row["packet_bound_hops"], row["cut_bound_hops"]) == row["bound_hops"] <= row["hops"]
    assert {label(row) for row in rows} >= {"improved, star:9", "coded-master, bcube:3,1"}


def test_a_schedule_below_the_bound_is_a_failure() -> None:
    assert below_bound("shuffle 1", {"hops": 9, "bound_hops": 9}) == []
    assert below_bound("shuffle 1", {"hops": 9, "bound_hops": None}) == []
    assert below_bound("shuffle 1", {"hops": 8, "bound_hops": 9}) == ["shuffle 1, 8 hops are less than the bound, 9"]
