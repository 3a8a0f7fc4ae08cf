"""Goals of studies: what counts as reached, and which study asks for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.definition import StudyHead
from gradbed.experiments.study.evaluation.goals import judged
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running import sandboxed
from gradbed.experiments.study.running.sandboxed import SandboxedExecutor
from tests.unit.experiments.study import coin  # noqa: F401  # registers the system
from tools.bench.__main__ import STUDIES

HEAD = StudyHead.model_validate(
    {
        "name": "s",
        "system": "coins",
        "goals": {"near": {"metric": "rate", "over": "bound", "at_least": 0.8, "at_most": 1}},
    }
)


def trial(repetition: int = 0, failures: list[str] | None = None, **row: Any) -> TrialRecord:
    stored = TrialRecord("d", 1, {"verdict": "valid", "bound": 0.7, **row}, {}, {}, failures or [])
    return stored.at({"way.kind": "slow"}, repetition)


def verdict(*trials: TrialRecord) -> str:
    [found] = judged(HEAD, StudyResults(Path(), {}, trials))
    assert found.place == "kind=slow"
    assert found.has_failed == (found.verdict in ("missed", "exceeded", "wrong"))
    return found.verdict


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"rate": 0.65}, "met"),
        ({"rate": 0.7 * (1 + 1e-9)}, "met"),
        ({"rate": 0.55}, "missed"),
        ({"rate": 0.55, "verdict": "simulated"}, "missed"),
        ({"rate": 0.55, "verdict": "degraded"}, "open"),
        ({"rate": 0.8, "verdict": "invalid"}, "exceeded"),
        ({"rate": 0.65, "failures": ["not the sum"]}, "wrong"),
        ({"rate": None}, "open"),
    ],
)
def test_verdicts(row: dict[str, Any], expected: str) -> None:
    assert verdict(trial(**row)) == expected


def test_repetitions_are_judged_by_their_mean() -> None:
    assert verdict(trial(rate=0.5), trial(1, rate=0.65)) == "met"
    assert verdict(trial(rate=0.4), trial(1, rate=0.65)) == "missed"


def test_the_words_of_a_failure() -> None:
    [found] = judged(HEAD, StudyResults(Path(), {}, (trial(rate=0.35),)))
    assert found.words == "goal near, kind=slow: 0.5, at least 0.8, at most 1: missed"


CLOCKS = StudyHead.model_validate(
    {
        "name": "s",
        "system": "coins",
        "goals": {"same": {"metric": "rate", "in_real_time": True, "at_least": 0.97, "at_most": 1.03}},
    }
)


def on_both_clocks(virtual: list[float], real: list[float], **row: Any) -> str:
    own = tuple(trial(number, rate=value) for number, value in enumerate(virtual))
    beside = tuple(replace(trial(number, rate=value, **row), other_clock=True) for number, value in enumerate(real))
    [found] = judged(CLOCKS, StudyResults(Path(), {}, own, beside))
    if real and virtual:
        assert found.value == pytest.approx(sum(real) / len(real) / (sum(virtual) / len(virtual)))
    return found.verdict


@pytest.mark.parametrize(
    ("virtual", "real", "row", "expected"),
    [
        ([2.0], [2.04], {}, "met"),
        ([2.0], [2.1], {}, "exceeded"),
        ([2.0], [1.9], {}, "missed"),
        ([2.0], [2.1], {"verdict": "degraded"}, "open"),
        ([2.0], [1.9], {"verdict": "degraded"}, "open"),
        ([2.0], [2.0], {"failures": ["not the sum"]}, "wrong"),
        ([2.0], [], {}, "open"),
        # Intervals: 2 +- 2.48 * 0.1 each, 2.2 +- 0.25 and 2.6 +- 0.25.
        ([1.9, 2.0, 2.1], [2.1, 2.2, 2.3], {}, "met"),
        ([1.9, 2.0, 2.1], [2.5, 2.6, 2.7], {}, "exceeded"),
        ([1.9, 2.0, 2.1], [1.4, 1.5, 1.6], {}, "missed"),
        # Of two repetitions intervals are so wide that they would always overlap.
        ([1.9, 2.1], [2.3, 2.5], {}, "exceeded"),
    ],
)
def test_real_time_beside_the_virtual_clock(
    virtual: list[float], real: list[float], row: dict[str, Any], expected: str
) -> None:
    assert on_both_clocks(virtual, real, **row) == expected


def test_a_goal_of_some_places_alone() -> None:
    head = CLOCKS.model_copy(deep=True)
    goal = head.goals["same"]
    for kind, found in (("slow", 1), ("fast", 0)):
        head.goals["same"] = goal.model_copy(update={"where": {"way.kind": kind}})
        assert len(judged(head, StudyResults(Path(), {}, (trial(rate=1.0),)))) == found


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("{metric: heads, at_least: 1, where: {coins.count: 3}}", "coins.count is not swept"),
        ("{metric: heads, at_least: 1, in_real_time: true}", "real_time: {share: 1}"),
    ],
)
def test_goals_that_cannot_be(goal: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(f"name: s\nsystem: coins\ngoals: {{one: {goal}}}\n")
    with pytest.raises(UserError, match=words):
        load_study(tmp_path / "study.yaml")


def test_what_bench_clocks_asks_for() -> None:
    """Of all settings round times; of those without loss and jitter counts, too, but for the ring's."""
    study = load_study(STUDIES / "clocks.yaml")
    own = [each for each in study.trials if not each.other_clock]
    # The five seeds of four settings in which something is drawn, and one of each other.
    assert len(own) == len(study.trials) - len(own) == 10 + 4 * 5
    assert {each.configuration.clock for each in study.trials if each.other_clock} == {"real"}
    rows = {"mean_round_time_s": 1.0, "server_packets": 1, "server_bytes": 1, "byte_hops": 1, "verdict": "valid"}
    done = [TrialRecord("", p.seed, rows, {}, {}, []).at(p.coordinates, p.repetition) for p in own]
    asked = Counter(goal.goal for goal in judged(study.head, StudyResults(Path(), {}, tuple(done))))
    assert list(asked.values()) == [14, 9, 9, 9]


def test_what_bench_throughput_asks_for() -> None:
    study = load_study(STUDIES / "throughput.yaml")
    assert [goal.at_least for goal in study.head.goals.values()] == [0.8]
    assert len(study.trials) == 7
    assert {trial.configuration.clock for trial in study.trials} == {"real"}


def test_a_trial_is_measured_again_while_the_machine_cannot_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter(["degraded", "valid", "degraded", "degraded", "valid"])

    def run(task: TrialTask, bars: bool, **how_it_is_watched: object) -> TrialRecord:
        return TrialRecord(task.digest, 1, {"verdict": next(found)}, {}, {}, [])

    monkeypatch.setattr(sandboxed, "run_sandboxed", run)
    tasks = [TrialTask(TrialConfiguration(), 1, Scale(), Path(), digest=name, attempts=2) for name in ("a", "b")]
    ended = [
        (task.digest, outcome.values["verdict"]) for task, outcome in SandboxedExecutor(tasks).results(lambda _: None)
    ]  # type: ignore[union-attr]
    assert ended == [("a", "valid"), ("b", "degraded")]
    assert list(found) == ["valid"]
