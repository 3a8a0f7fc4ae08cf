"""Every kind of figure is drawn of a small study, of the numbers that its tables have."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.study.evaluation.figures import courses
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import studies_of
from gradbed.experiments.systems.ndn.figures import answers
from tests.unit.small_study import run_study_named_small

STUDY = """
name: small
system: ndn
clock: virtual
topology: {kind: "star:3", link: {loss: 0.05}}
workload: {kind: training, peers: 3, rounds: 3, hidden_units: 8, lanes: 64}
sweep:
  product:
    routers.contents: [64, 0]
    topology.link.loss: [0.05]
    workload.peers: [3]
    workload.exchange: [push]
    workload.slowness: [1]
    workload.mode: [synchronous, asynchronous]
figures:
  byte-hops: {kind: ndn-byte-hops, x: workload.peers, y: gradient_hops, series: workload.exchange}
  recoveries: {kind: ndn-recoveries, x: topology.link.loss, y: store_share, series: routers.contents}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study_named_small(STUDY, tmp_path_factory.mktemp("small"))[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["byte-hops", "recoveries"])
def test_it_is_drawn(name: str, folder: Path) -> None:
    assert (folder / f"{name}.png").stat().st_size > 0


def test_numbers_of_figures_are_those_of_the_tables(folder: Path) -> None:
    results = load_results(folder)
    rows = [trial.row for trial in results.trials]
    # A tree of three links: two ways over each where switches sum, and each of three gradients once over each.
    assert {(row["summed_hops"], row["expected_hops"]) for row in rows} == {(6, 9)}
    found = answers(results)
    assert set(found) == {(64, 0.05), (0, 0.05)}
    assert found[64, 0.05][1] > 0
    assert set(found[0, 0.05]) == {None}
    figure = load_study(studies_of("ndn")[4]).head.figures["accuracy"]
    assert figure.course is not None
    lines = courses(results, figure.course, figure.series)
    assert {(value, line.row["workload.mode"]) for (value, *_), line in lines.items()} == {
        (1, "synchronous"),
        (1, "asynchronous"),
    }
    for line in lines.values():
        # Of both stores: two trials at each version.
        assert [len(found) for found in line.steps.values()] == [2, 2, 2]
        assert line.xs == sorted(line.xs)
