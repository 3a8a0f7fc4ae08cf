"""Large trials: what is measured, and which time a goal judges."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.systems import find_system
from tools.bench import scale
from tools.bench.scale import ScaleResult, Spent, measured, run_bench_scale
from tools.bench.scale_trials import SCALE_TRIALS, ScaleTrial

STAR = ScaleTrial(
    name="star",
    system="aggregation",
    configuration={
        "topology": {"kind": "star:3"},
        "switches": {"placement": "shared-path"},
        "workload": {"kind": "synthetic", "workers": 2, "values": 7 * 64, "lanes": 64, "rounds": 1},
    },
    shrunk={"workload": {"values": 3 * 64}},
)


@pytest.mark.thorough
def test_names_of_trials() -> None:
    assert {trial.name for trial in SCALE_TRIALS} == {
        "aggregation-64",
        "aggregation-512",
        "ndn-128",
        "shuffle-1024",
        "interconnect-216",
        "workload-1024",
        "training-1024",
    }
    for trial in SCALE_TRIALS:
        found = find_system(trial.system)
        # As a run does before it begins: a trial that is refused would be reported after minutes.
        found.check(found.configuration.model_validate({"clock": "virtual", **trial.configuration}))


@pytest.mark.parametrize(("small", "fragments"), [(False, 7), (True, 3)])
def test_a_trial_in_full_and_small(small: bool, fragments: int) -> None:
    found = measured(STAR, small)
    # From each worker to the switch, the sum to the server, its ACK to the switch, and on to each worker.
    assert found.hops == 6 * fragments
    assert found.hosts == 3
    assert 0 < found.round.cpu_s < found.whole.cpu_s
    assert 0 < found.round.wall_s < found.whole.wall_s


@pytest.mark.parametrize(
    ("judges_round", "goal_s", "goal_cpu_s", "status"),
    [(True, 2.0, None, 0), (True, 0.9, None, 1), (True, None, 1.9, 1), (False, 9.0, None, 1), (False, 10.0, 20.0, 0)],
)
def test_the_goal_decides(
    judges_round: bool,
    goal_s: float | None,
    goal_cpu_s: float | None,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trial = ScaleTrial("some", "aggregation", {}, {}, judges_round, goal_s, goal_cpu_s)
    row = ScaleResult(trial, 3, whole=Spent(10.0, 20.0), round=Spent(1.0, 2.0), hops=42, bytes=1 << 20)
    monkeypatch.setattr(scale, "SCALE_TRIALS", (trial,))
    monkeypatch.setattr(scale, "measured", lambda trial, small, threads: row)
    names: Sequence[str] = ["some"]
    assert run_bench_scale(names, small=False) == status
    assert ("missed" in capsys.readouterr().out) == bool(status)
    assert run_bench_scale(names, small=True) == 0


def test_an_unknown_trial_is_refused() -> None:
    with pytest.raises(UserError, match="no trial 'aggregation-65': aggregation-64, "):
        run_bench_scale(["aggregation-65"], small=True)
