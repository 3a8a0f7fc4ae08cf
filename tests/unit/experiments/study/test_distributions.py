"""Figures of kind distribution, read back from matplotlib's own objects, beside NumPy's quantiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.plotting.style import NothingToDraw, figure
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import FigureSection
from gradbed.experiments.study.evaluation.figures import (
    SHARES,
    Distribution,
    draw_distribution,
    draw_figures,
    write_figure_data,
)
from gradbed.experiments.study.evaluation.kinds import Sheet
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import run_trials
from gradbed.experiments.tables.metric import Metric
from tests.csv_files import read_csv
from tests.unit.experiments.study import coin  # noqa: F401  # registers the system

WAITS = {"slow": [5.0, 1.0, 3.0], "fast": [2.0, 2.0, 1.0, 4.0, 9.0, 7.0]}


def trial(way: str, repetition: int, *, verdict: str = "valid", failures: int = 0) -> TrialRecord:
    waits = [{"wait_us": wait, "times": 2, "what": "a wait"} for wait in [*WAITS[way], None]]
    row = {"clock": "virtual", "scale_factor": 1, "verdict": verdict, "wait_s": float(repetition)}
    stored = TrialRecord("d", 1, row, {"waits": waits}, {}, ["wrong"] * failures)
    return stored.at({"way": way}, repetition)


def drawn(*trials: TrialRecord, **section: Any) -> Any:
    results = StudyResults(Path(), {"title": "t", "quick": False}, trials)
    shown = FigureSection(kind="distribution", **section)
    with figure() as (_, [axes]):
        assert "values of all" in draw_distribution(Sheet([axes], results, shown, {"wait_s": Metric("s", "a wait")}))
        return axes


def curves(axes: Any) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if len(line.get_xdata()) > 1]


def medians(axes: Any) -> list[float]:
    return [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0.5]]


def test_a_step_at_every_value_counted_by_hand() -> None:
    trials = [trial("slow", 0), trial("slow", 1), trial("fast", 0), trial("fast", 1)]
    axes = drawn(*trials, x="wait_us", table="waits", series="way", x_scale="log")
    assert curves(axes) == [
        ([1, 1, 3, 5], [0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1]),
        ([1, 1, 2, 4, 7, 9], pytest.approx([0, 1 / 6, 3 / 6, 4 / 6, 5 / 6, 1])),
    ]
    assert medians(axes) == [3, 2]
    assert {line.get_drawstyle() for line in axes.lines if len(line.get_xdata()) > 1} == {"steps-post"}
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == ("log", "wait (us)", "CDF of waits")
    assert axes.get_legend_handles_labels()[1] == ["slow", "fast", "median"]


def test_a_log_axis_begins_above_0_at_the_height_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAITS, "slow", [0.0, 0.0, 1.0, 3.0])
    trials = trial("slow", 0), trial("slow", 1)
    axes = drawn(*trials, x="wait_us", table="waits", x_scale="log")
    assert curves(axes) == [([1, 1, 3], [0.5, 0.75, 1])]
    assert medians(axes) == []


def test_values_of_trials_are_those_of_good_repetitions() -> None:
    bad = trial("slow", 7, verdict="invalid"), trial("slow", 8, failures=1)
    axes = drawn(*(trial("slow", n) for n in range(4)), *bad, x="wait_s")
    assert curves(axes) == [([0, 0, 1, 2, 3], [0, 0.25, 0.5, 0.75, 1])]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("a wait (s)", "CDF of trials")


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101, 1000])
def test_quantiles_are_numpys(count: int) -> None:
    draw = np.random.default_rng(count)
    values, weights = draw.integers(0, 60, count), draw.integers(1, 9, count)
    for found, every in (
        (Distribution.of(values.tolist(), [1.0] * count), values),
        (Distribution.of(values.tolist(), weights.tolist()), np.repeat(values, weights)),
    ):
        assert [found.quantile(share) for share in SHARES] == [
            np.quantile(every, share, method="inverted_cdf") for share in SHARES
        ]


def test_a_table_without_such_numbers_is_told() -> None:
    for section, words in (
        ({"x": "wait_ms", "table": "waits"}, "its table has no column wait_ms, only digest, way, repetition"),
        ({"x": "what", "table": "waits"}, "what has words in its table, such as a wait"),
        ({"x": "wait_us", "table": "losses"}, "^$"),
    ):
        with pytest.raises(NothingToDraw, match=words):
            drawn(trial("slow", 0), **section)


STUDY = """
name: tosses
system: coins
sweep: {product: {coins.bias: [0.2, 0.8]}}
repetitions: 30
figures:
  spread: {kind: distribution, x: heads, series: coins.bias}
  throws: {kind: distribution, x: throw, table: throws, weight: heads}
"""


@pytest.mark.thorough
def test_a_study_has_the_figure_and_its_quantiles(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    study = load_study(tmp_path / "study.yaml")
    results = load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder)
    written = draw_figures(results, study.head.figures, study.system.metrics)
    assert [path.name for path in written if path.suffix == ".svg"] == ["spread.svg", "throws.svg"]
    assert "coins that showed heads" in (results.folder / "spread.svg").read_text()
    assert write_figure_data(study, results).name == "tosses.csv"
    rows = read_csv(results.folder / "data" / "tosses_spread.csv")
    for bias in (0.2, 0.8):
        heads = [each.row["heads"] for each in results.trials if each.coordinates["coins.bias"] == bias]
        assert [float(row["heads"]) for row in rows if float(row["coins.bias"]) == bias] == [
            np.quantile(heads, share, method="inverted_cdf") for share in SHARES
        ]
    throws = read_csv(results.folder / "data" / "tosses_throws.csv")
    heads = [row["throw"] for row in results.table("throws") if row["heads"]]
    assert [float(row["throw"]) for row in throws] == [
        np.quantile(heads, share, method="inverted_cdf") for share in SHARES
    ]


@pytest.mark.thorough
def test_a_column_that_is_not_there_ends_no_study(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.replace("x: throw,", "x: through,"))
    study = load_study(tmp_path / "study.yaml")
    results = load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder)
    said: list[str] = []
    draw_figures(results, study.head.figures, study.system.metrics, said.append)
    assert [line.partition(",")[0] for line in said] == ["no figure throws: its table has no column through"]
    write_figure_data(study, results)
    assert sorted(path.name for path in (results.folder / "data").iterdir()) == ["tosses.csv", "tosses_spread.csv"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{kind: distribution, x: heads, y: heads}", "a distribution has no y"),
        ("{kind: distribution, x: head}", "there is no metric 'head'"),
        ("{kind: distribution, x: heads, series: coins.count}", "coins.count is not swept"),
        ("{kind: distribution, x: heads, weight: throw}", "name the table, too"),
        ("{kind: distribution, x: throw, table: throws, normalised: true}", "throw does not depend on the link rate"),
        ("{x: coins.bias}", "y is missing"),
        ("{x: coins.bias, y: heads, table: throws}", "for kind distribution"),
    ],
)
def test_what_a_distribution_cannot_be(section: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.split("figures:")[0] + f"figures:\n  one: {section}\n")
    with pytest.raises(UserError, match=words):
        load_study(tmp_path / "study.yaml")
