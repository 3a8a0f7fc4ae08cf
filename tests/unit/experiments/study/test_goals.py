"""Goals of studies: what counts as reached, and which study asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.records.results import StudyResults
from experiments.records.run_files import DonePoint, StoredPoint
from experiments.study.definition.model import StudyHead
from experiments.study.evaluation.goals import judged
from experiments.study.loading import load_study
from experiments.study.running import execution
from experiments.study.running.execution import OneByOne
from experiments.study.running.measure import PointOrder
from experiments.systems import studies_folder

HEAD = StudyHead.model_validate(
    {
        "name": "s",
        "system": "coins",
        "goals": {"near": {"metric": "rate", "over": "bound", "at_least": 0.8, "at_most": 1}},
    }
)


def point(repetition: int = 0, failures: list[str] | None = None, **row: Any) -> DonePoint:
    stored = StoredPoint("d", 1, {"verdict": "valid", "bound": 0.7, **row}, {}, {}, failures or [])
    return DonePoint({"way.kind": "slow"}, repetition, stored)


def verdict(*points: DonePoint) -> str:
    [found] = judged(HEAD, StudyResults(Path(), {}, points))
    assert found.place == "kind=slow"
    assert found.has_failed == (found.verdict in ("missed", "exceeded", "wrong"))
    return found.verdict


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"rate": 0.65}, "met"),
        ({"rate": 0.7 * (1 + 1e-9)}, "met"),
        ({"rate": 0.55}, "missed"),
        ({"rate": 0.55, "verdict": "model"}, "missed"),
        ({"rate": 0.55, "verdict": "doubtful"}, "open"),
        ({"rate": 0.8, "verdict": "invalid"}, "exceeded"),
        ({"rate": 0.65, "failures": ["not the sum"]}, "wrong"),
        ({"rate": None}, "open"),
    ],
)
def test_verdicts(row: dict[str, Any], expected: str) -> None:
    assert verdict(point(**row)) == expected


def test_repetitions_are_judged_by_their_mean() -> None:
    assert verdict(point(rate=0.5), point(1, rate=0.65)) == "met"
    assert verdict(point(rate=0.4), point(1, rate=0.65)) == "missed"


def test_the_words_of_a_failure() -> None:
    [found] = judged(HEAD, StudyResults(Path(), {}, (point(rate=0.35),)))
    assert found.words == "goal near, kind=slow: 0.5, at least 0.8, at most 1: missed"


def test_what_bench_throughput_asks_for() -> None:
    study = load_study(studies_folder("aggregation") / "bench_throughput.yaml")
    assert [goal.at_least for goal in study.head.goals.values()] == [0.8]
    assert len(study.points) == 7
    assert {point.configuration.clock for point in study.points} == {"real"}


def test_a_point_is_measured_again_while_the_machine_cannot_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter(["doubtful", "valid", "doubtful", "doubtful", "valid"])

    def run(order: PointOrder, *how_it_is_watched: object) -> StoredPoint:
        return StoredPoint(order.digest, 1, {"verdict": next(found)}, {}, {}, [])

    monkeypatch.setattr(execution, "run_sandboxed", run)
    orders = [PointOrder(name, "coins", {}, 1, 1.0, Path(), attempts=2) for name in ("a", "b")]
    ended = [(order.digest, outcome.row["verdict"]) for order, outcome in OneByOne(orders).results(lambda _: None)]  # type: ignore[union-attr]
    assert ended == [("a", "valid"), ("b", "doubtful")]
    assert list(found) == ["valid"]
