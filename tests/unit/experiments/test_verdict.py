"""A run whose weights or counters disagree says so and fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from experiments.config import AggregationConfig

from experiments import aggregation
from experiments.run_folder import RunFolder
from experiments.systems.aggregation.counts import ModeOutcome
from switch.errors import UserError
from tests.unit.experiments.outcomes import BOTH
from tests.unit.experiments.test_accounting import AGREEING, tally


def verdict(
    outcomes: list[ModeOutcome] | UserError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Path]:
    def measure(config: AggregationConfig, folder: RunFolder) -> list[ModeOutcome]:
        if isinstance(outcomes, UserError):
            raise outcomes
        return outcomes

    monkeypatch.setattr(aggregation, "_measure", measure)
    folder = RunFolder(tmp_path, "aggregation")
    return aggregation._in_sandbox(AggregationConfig(), folder), folder.path


def test_a_good_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    good = [replace(outcome, accounts=(AGREEING,)) for outcome in BOTH]
    status, path = verdict(good, tmp_path, monkeypatch)
    assert status == 0
    output = capsys.readouterr().out
    assert "bit for bit" in output
    assert "FAILED" not in output
    assert {"rounds.csv", "hosts.csv", "summary.csv", "figure.png", "figure.pdf"} <= {f.name for f in path.iterdir()}


def test_weights_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [
        BOTH[0],
        replace(BOTH[1], mismatches=tuple(f"round {n}, worker 3: weights a instead of b" for n in range(9))),
    ]
    assert verdict(bad, tmp_path, monkeypatch)[0] == 1
    output = capsys.readouterr().out
    assert "FAILED: in-network, round 0, worker 3: weights a instead of b" in output
    assert "and 4 more" in output
    assert "bit for bit" not in output


def test_counters_that_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [replace(BOTH[0], accounts=(replace(AGREEING, switch_received=tally(95)),)), BOTH[1]]
    assert verdict(bad, tmp_path, monkeypatch)[0] == 1
    assert "FAILED: parameter server, h2: its switch counted 95 packets" in capsys.readouterr().out


def test_what_the_user_can_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(UserError("worker 0: no ACK from server"), tmp_path, monkeypatch)[0] == 2
    assert capsys.readouterr().err == "gradbed: worker 0: no ACK from server\n"
