"""Studies that are wrong, each answered by one line that names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.yaml_text import StudyError
from tests.unit.experiments.study import coin  # registers the system

SYSTEMS = Path(__file__).resolve().parents[4] / "experiments" / "systems"

GOOD = """\
name: tosses
system: coins
topology:
  kind: star:4
  link: {rate_mbps: 10, delay_us: 20}
  tiers:
    host: {loss: 0.1}
coins:
  count: 5
sweep:
  product:
    coins.count: [1, 2]
  zip:
    coins.bias: [0.1, 0.9]
    topology.link.delay_us: [1, 9]
repetitions: 2
metrics: [heads]
figures:
  heads: {x: coins.count, y: heads, series: coins.bias}
quick:
  repetitions: 1
  coins.sleep_s: 0.5
  sweep.product:
    coins.count: [1]
"""


def load(tmp_path: Path, text: str = GOOD, quick: bool = False) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return load_study(path, quick)


def test_product_axes_are_combined_and_zip_axes_go_in_step(tmp_path: Path) -> None:
    trials = load(tmp_path).trials
    assert [(*trial.coordinates.values(), trial.seed) for trial in trials] == [
        (count, bias, delay, seed) for count in (1, 2) for bias, delay in ((0.1, 1), (0.9, 9)) for seed in (1, 2)
    ]
    configuration = trials[-1].configuration
    assert configuration.topology.link.delay_us == 9
    assert configuration.topology.link.rate_mbps == 10


def test_without_a_sweep_there_is_one_trial_for_each_seed(tmp_path: Path) -> None:
    trials = load(tmp_path, "name: one\nsystem: coins\nseeds: [7, 5]\nrepetitions: 2\n").trials
    assert [trial.seed for trial in trials] == [7, 5]


def test_quick_changes_sections_sweeps_and_dotted_paths(tmp_path: Path) -> None:
    study = load(tmp_path, quick=True)
    assert [(p.coordinates["coins.count"], p.coordinates["coins.bias"]) for p in study.trials] == [(1, 0.1), (1, 0.9)]
    configuration = study.trials[0].configuration
    assert isinstance(configuration, coin.CoinConfiguration)
    assert configuration.coins.sleep_s == 0.5


WRONG = [
    ("system: coins", "system: coin", 2, "no system is called 'coin'; did you mean 'coins'?"),
    ("system: coins\n", "", 1, "which system"),
    ("name: tosses", "name: to/sses", 1, "letters, digits"),
    ("coins:\n", "conis:\n", 8, "no section 'conis'; did you mean 'coins'?"),
    ("  count: 5", "  conut: 5", 9, "coins: there is no 'conut' here; did you mean 'count'?"),
    ("count: 5", "count: 5\n  count: 6", 10, "'count' is given twice"),
    ("bias: [0.1, 0.9]", "bias: [0.1, 1.9]", 14, "coins.bias: must be at most 1, got 1.9"),
    ("[0.1, 0.9]", "[0.1, 0.9, 1.0]", 10, "coins.bias has 3, topology.link.delay_us has 2"),
    ("coins.count: [1, 2]", "coins.count: []", 12, "at least 1 value"),
    ("coins.count: [1, 2]", "coins.count.more: [1]", 12, "coins.count is not a section"),
    ("coins.count: [1, 2]", "coins.count: [1, 13]", 15, "coins.count = 13, coins.bias = 0.1"),
    ("coins.count: [1, 2]", "coins.cuont: [1, 2]", 12, "coins: there is no 'cuont' here; did you mean 'count'?"),
    ("kind: star:4", "kind: sta:4", 3, "unknown topology 'sta:4'"),
    ("host: {loss", "hots: {loss", 3, "no links of class 'hots'; it has: host"),
    ("{loss: 0.1}", "{loss: 1.1}", 7, "topology.tiers.host.loss: must be less than 1, got 1.1"),
    ("{loss: 0.1}", "{los: 0.1}", 7, "topology.tiers.host: there is no 'los' here; did you mean 'loss'?"),
    ("rate_mbps: 10", "rate_mbps: .nan", 5, "topology.link.rate_mbps"),
    ("repetitions: 2", "repetitions: 0", 16, "must be at least 1, got 0"),
    ("repetitions: 2", "repetitions: 2\nseeds: [1]", 1, "2 repetitions need as many seeds, got 1"),
    ("metrics: [heads]", "metrics: [heds]", 17, "coins has no metric 'heds'; did you mean 'heads'?"),
    ("y: heads", "y: heds", 19, "no metric 'heds'; did you mean 'heads'?"),
    ("x: coins.count", "x: coins.cuont", 19, "coins.cuont is not swept; did you mean 'coins.count'?"),
    ("y: heads", "y: heads, kind: barz", 19, "no kind of figure 'barz'; did you mean 'bars'?"),
    ("metrics: [heads]", "goals: {g: {metric: heds, at_most: 1}}", 17, "no metric 'heds'; did you mean 'heads'?"),
    ("metrics: [heads]", "goals: {g: {metric: heads}}", 17, "a goal has at_least, at_most or both"),
    ("y: heads", "y: heads, panels: [{}, {y: heds}]", 19, "no metric 'heds'; did you mean 'heads'?"),
    (
        "y: heads",
        "y: heads, panels: [{kind: course}]",
        19,
        "a panel cannot be: kind course and a section course go together",
    ),
    ("y: heads", "y: heads, normalised: true", 19, "does not depend on the link rate"),
    ("kind: star:4", "kind: [", 6, "expected"),
    ("kind: star:4", "kind: !!python/name:os.system x", 4, "could not determine a constructor"),
    (GOOD, "just words", 1, "a study is a mapping"),
    (GOOD, "? [1]\n: 2", 1, "a key is a word"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG, ids=[f"{new[:30]!r}" for _, new, *_ in WRONG])
def test_what_is_wrong_is_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(StudyError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path}/study.yaml:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("sleep_s: 0.5", "sleep_s: soon", 22, "coins.sleep_s: must be a number"),
        ("sleep_s: 0.5", "slep_s: 0.5", 22, "did you mean 'sleep_s'?"),
        ("    coins.count: [1]\n", "    coins.count: [0]\n", 24, "must be at least 1, got 0"),
        ("  repetitions: 1", "  name: other", 21, "quick cannot change 'name'"),
        ("  repetitions: 1", "  repititions: 1", 21, "no section 'repititions'; did you mean 'repetitions'?"),
    ],
)
def test_what_is_wrong_with_quick(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    with pytest.raises(StudyError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1), quick=True)
    assert str(caught.value).startswith(f"{tmp_path}/study.yaml:{line}: ")
    assert message in str(caught.value)


@pytest.mark.commit_cases(15)
@pytest.mark.parametrize("path", sorted(SYSTEMS.glob("*/studies/*_*.yaml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("quick", [False, True])
def test_the_studies_that_come_with_it_are_right(path: Path, quick: bool) -> None:
    study = load_study(path, quick)
    assert study.name == path.stem
    assert study.trials
