"""What the comparison of the two clocks makes of what it measures."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.fidelity.report import FidelityMeasures, FidelityReport
from experiments.records.run_files import StoredPoint
from experiments.scale import Scale
from experiments.systems.aggregation.bench import clocks
from experiments.systems.aggregation.bench.clocks import SETTINGS, Setting, compare, run_bench_clocks

COUNTS = {"server_packets": 10, "server_bytes": 100, "byte_hops": 1000}


def measured(clock: str, round_time_s: float, verdict: str, **more: Any) -> StoredPoint:
    rounds = [{"job": 1, "round": n, "round_time_s": 9.0 if n == 0 else round_time_s} for n in range(4)]
    reasons = () if verdict == "valid" else ("the switch was late",)
    report = FidelityReport(FidelityMeasures(), verdict if clock == "real" else "model", reasons)
    row = {**report.columns(), **COUNTS, **more.get("counts", {})}
    return StoredPoint("d", 1, row, {"rounds": rounds}, {}, more.get("failures", []))


def made_up(monkeypatch: pytest.MonkeyPatch, real_s: float, verdict: str = "valid", **more: Any) -> None:
    """Points that take 1 s on the virtual clock; with several seeds they spread a little."""

    def run_now(system: str, configuration: Any, scale: Scale, seed: int) -> StoredPoint:
        if configuration.clock == "virtual":
            return measured("virtual", 1.0 + seed / 100, verdict)
        return measured("real", real_s + seed / 100, verdict, **more)

    monkeypatch.setattr(clocks, "run_now", run_now)


@pytest.mark.parametrize(
    ("real_s", "verdict", "more", "judgement"),
    [
        (1.02, "valid", {}, "agrees"),
        (1.05, "valid", {}, "differs"),
        (0.95, "valid", {}, "differs"),
        (1.05, "doubtful", {}, "open"),
        (1.0, "valid", {"counts": {"byte_hops": 1001}}, "differs"),
        (1.0, "valid", {"failures": ["a sum is wrong"]}, "wrong"),
    ],
)
def test_without_loss_times_and_counts_agree(
    real_s: float, verdict: str, more: dict[str, Any], judgement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(monkeypatch, real_s, verdict, **more)
    assert compare(SETTINGS[0], Scale()).judgement == judgement


def test_with_loss_intervals_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    lossy = next(setting for setting in SETTINGS if setting.is_random)
    made_up(monkeypatch, 1.02)
    assert compare(lossy, Scale()).judgement == "agrees"
    made_up(monkeypatch, 1.2)
    assert compare(lossy, Scale()).judgement == "differs"


def test_there_are_settings_enough_and_all_are_right() -> None:
    assert len(SETTINGS) >= 12
    for setting in SETTINGS:
        assert setting.configuration("virtual").clock == "virtual"


def test_a_difference_is_exit_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made_up(monkeypatch, 1.05)
    assert run_bench_clocks([Setting("one")], factor=1.0) == 1
    assert "differs" in capsys.readouterr().out
    made_up(monkeypatch, 1.0)
    assert run_bench_clocks([Setting("one")], factor=1.0) == 0
    made_up(monkeypatch, 1.05, "doubtful")
    assert run_bench_clocks([Setting("one")], factor=1.0) == 0
    assert "one: +5.0 % (doubtful; the switch was late)" in capsys.readouterr().err
