"""Values of a swept path beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.evaluation.summary import Comparison, compared, comparison_tables, short_names
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running import runner
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import run_trials
from gradbed.experiments.study.yaml_text import StudyError
from tests.csv_files import read_csv
from tests.unit.experiments.study import coin  # registers the system

STUDY = """
name: tosses
system: coins
sweep:
  product: {coins.count: [10, 1000]}
  zip: {coins.bias: [0.2, 0.8], coins.ignored: [1, 2]}
repetitions: 3
compare: coins.bias
"""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "open_executor", coin.in_this_process)


def ran(tmp_path: Path, text: str = STUDY) -> tuple[Study, StudyResults]:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    study = load_study(path)
    return study, load_results(run_trials(study, Scale(), RunOptions(tmp_path / "results")).folder)


def found(study: Study, results: StudyResults) -> list[Comparison]:
    return compared(study.head, list(study.system.metrics), results)


def heads(results: StudyResults, **coordinates: Any) -> list[float]:
    wanted = {f"coins.{name}": value for name, value in coordinates.items()}
    return [p.row["heads"] for p in results.trials if wanted.items() <= p.coordinates.items()]


def test_differences_are_of_the_same_seeds_at_each_place(tmp_path: Path) -> None:
    study, results = ran(tmp_path)
    comparisons = found(study, results)
    assert [each.place for each in comparisons] == [{"coins.count": 10}, {"coins.count": 1000}]
    for comparison in comparisons:
        assert comparison.values == [0.2, 0.8]
        count = comparison.place["coins.count"]
        few, many = (heads(results, count=count, bias=bias) for bias in comparison.values)
        assert comparison.means["heads"] == [pytest.approx(sum(few) / 3), pytest.approx(sum(many) / 3)]
        (difference,) = comparison.differences["heads"]
        assert difference is not None and difference.half is not None and difference.half > 0
        assert difference.difference == pytest.approx(sum(many) / 3 - sum(few) / 3) and difference.difference > 0
        (same,) = comparison.differences["throughput_bps"]
        assert same is not None and (same.difference, same.half) == (0, 0)


def test_it_is_a_table_for_people_and_a_file(tmp_path: Path) -> None:
    study, results = ran(tmp_path)
    first, second = comparison_tables(study.head, study.system.metrics, results)
    assert (first.title, second.title) == ("bias compared: count 10", "bias compared: count 1000")
    assert [column.header for column in first.columns] == ["metric", "0.2", "0.8", "difference"]
    rows = {(row["coins.count"], row["metric"]): row for row in read_csv(results.folder / "comparison.csv")}
    assert rows["10", "limit"]["difference"] == "0.0"
    assert float(rows["1000", "heads"]["relative_difference"]) == pytest.approx(
        sum(heads(results, count=1000, bias=0.8)) / sum(heads(results, count=1000, bias=0.2)) - 1
    )


def test_three_values_are_each_compared_with_the_first(tmp_path: Path) -> None:
    study, results = ran(
        tmp_path, "name: a\nsystem: coins\ncompare: coins.count\nsweep: {product: {coins.count: [2, 4, 8]}}"
    )
    (comparison,) = found(study, results)
    assert [each.difference for each in comparison.differences["limit"] if each] == [2, 6]
    (table,) = comparison_tables(study.head, study.system.metrics, results)
    assert [column.header for column in table.columns] == ["metric", "2", "4", "4 - 2", "8", "8 - 2"]


def test_trials_that_failed_count_only_where_there_are_no_others(tmp_path: Path) -> None:
    text = "name: a\nsystem: coins\ncompare: coins.ends\nsweep: {product: {coins.ends: ['', edge]}}"
    study, results = ran(tmp_path, text)
    (comparison,) = found(study, results)
    assert comparison.means["limit"] == [10, 10]


def test_only_what_is_swept_can_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("compare: coins.bias", "compare: coins.bia"))
    with pytest.raises(StudyError, match=r"study.yaml:8: coins.bia is not swept.*coins.bias"):
        load_study(path)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["/x/one/a.p4", "/x/two/b.p4"], ["a.p4", "b.p4"]),
        (["/x/one/a.p4", "/x/two/a.p4"], ["one/a.p4", "two/a.p4"]),
        ([1, 2.5], ["1", "2.5"]),
        ([None, "/x/e.yaml"], ["none", "e.yaml"]),
    ],
)
def test_paths_are_told_apart_by_their_last_parts(values: list[Any], names: list[str]) -> None:
    assert short_names(values) == names
