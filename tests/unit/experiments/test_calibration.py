"""The factor that comes of rising rates, and where it is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.study import calibration
from gradbed.experiments.study import calibration as calibration_run
from gradbed.experiments.study.calibration import (
    RATES_MBPS,
    SAFETY,
    UNCALIBRATED_FACTOR,
    find_factor,
    load_calibration,
    measure_at,
    study_scale,
)
from gradbed.experiments.validity.verdict import ValidityMeasures, ValidityReport, VerdictWord

DEGRADED = ValidityReport(verdict="degraded", reasons=("made so",))


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "deep" / "calibration.json"
    monkeypatch.setenv("GRADBED_CALIBRATION", str(path))
    return path


def test_the_fastest_valid_rate_less_a_margin() -> None:
    factor, carried, trials = find_factor(lambda rate: ValidityReport(verdict="valid") if rate <= 20 else DEGRADED)
    assert carried == 20
    assert factor == pytest.approx(SAFETY * 0.2)
    assert [trial.rate_mbps for trial in trials] == [*RATES_MBPS[: RATES_MBPS.index(20) + 1], 30, 30]
    assert trials[-1].reasons == ["made so"]


def test_a_machine_that_carries_the_nominal_rate_runs_at_it() -> None:
    assert find_factor(lambda rate: ValidityReport(verdict="valid"))[:2] == (1.0, 100.0)


def test_one_bad_run_is_not_believed() -> None:
    verdicts: dict[float, list[VerdictWord]] = {10.0: ["degraded", "valid"]}
    factor, carried, _ = find_factor(
        lambda rate: ValidityReport(verdict=verdicts.get(rate, ["valid"] * 2).pop(0) if rate <= 30 else "invalid")
    )
    assert carried == 30
    assert factor == pytest.approx(0.24)


def test_a_machine_that_carries_nothing_gets_the_slowest_rate() -> None:
    factor, carried, trials = find_factor(lambda rate: DEGRADED)
    assert carried == RATES_MBPS[0]
    assert factor == pytest.approx(SAFETY * 0.05)
    assert len(trials) == 2


def test_what_is_stored_is_the_scale_of_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert study_scale() == Scale(UNCALIBRATED_FACTOR)
    assert "sudo ./gradbed calibrate" in capsys.readouterr().err
    calibration.store(*find_factor(lambda rate: ValidityReport(verdict="valid") if rate <= 50 else DEGRADED))
    assert study_scale() == Scale(0.4)
    assert capsys.readouterr().err == ""


def test_the_calibration_of_another_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    calibration.store(0.5, 50.0, [])
    assert load_calibration() is not None
    monkeypatch.setattr(calibration, "machine_key", lambda: "another")
    assert load_calibration() is None


@pytest.mark.parametrize("text", ["", "{}", '{"factor": 7}', "[]", "\0\xff", '{"trials": 1}'])
def test_a_damaged_file_is_one_line(own_file: Path, text: str) -> None:
    calibration.store(0.5, 50.0, [])
    own_file.write_bytes(text.encode("latin-1"))
    damaged = f"the calibration {own_file} is damaged: run 'sudo ./gradbed calibrate' again"
    with pytest.raises(UserError, match=f"^{re.escape(damaged)}"):
        study_scale()
    calibration.store(0.5, 50.0, [])
    assert study_scale() == Scale(0.5)


def test_a_scale_that_makes_no_sense_is_damage(own_file: Path) -> None:
    calibration.store(0.5, 50.0, [])
    own_file.write_text(own_file.read_text().replace('"factor": 0.5', '"factor": 7'))
    with pytest.raises(UserError, match="damaged"):
        study_scale()


def test_a_place_that_cannot_hold_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADBED_CALIBRATION", str(tmp_path / "file" / "calibration.json"))
    with pytest.raises(UserError, match=r"cannot keep the calibration in .*: File exists"):
        calibration.store(0.5, 50.0, [])
    with pytest.raises(UserError, match=r"cannot read the calibration .*: Not a directory"):
        study_scale()


@pytest.mark.parametrize(("rate_mbps", "rounds"), [(5, 8), (100, 160)])
def test_trials_take_about_as_long_at_every_rate(
    rate_mbps: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    found = ValidityReport(ValidityMeasures(machine_others=0.25), "degraded", ("made so", "and so"))

    def run_single_trial(system: str, configuration: Any, scale: Scale) -> TrialRecord:
        asked.append((system, configuration.workload.rounds, scale, configuration.clock))
        return TrialRecord("trial", 1, found.columns(), {}, {}, [])

    monkeypatch.setattr(calibration_run, "run_single_trial", run_single_trial)
    assert measure_at(rate_mbps) == found
    assert asked == [("aggregation", rounds, Scale(rate_mbps / 100), "real")]


@pytest.mark.parametrize(("others", "anyway", "status"), [(0.1, False, 0), (0.2, False, 1), (0.2, True, 0)])
def test_a_calibration_beside_other_programs_is_not_kept(
    own_file: Path,
    others: float,
    anyway: bool,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(calibration_run, "require_root", lambda what: None)
    found = ValidityReport(ValidityMeasures(machine_others=others), "valid")
    monkeypatch.setattr(calibration_run, "measure_at", lambda rate_mbps: found)
    assert calibration_run.run_calibration(anyway) == status
    assert own_file.exists() == (status == 0)
    assert ("other programs used up to 20 %" in capsys.readouterr().out) == (status == 1)


def test_scaling_keeps_what_is_counted_in_packets() -> None:
    scale = Scale(0.25)
    rate_bps = scale.rate_bps(100.0)
    assert rate_bps == 25_000_000
    # A bandwidth-delay product stays as it is.
    assert rate_bps * scale.time_us(50) == 100_000_000 * 50
    assert scale.nominal_rate(rate_bps) == 100e6
    assert scale.nominal_time(scale.time_us(50)) == 50
    assert scale.rate_bps(None) is None
    for factor in (0, -1, 1.5):
        with pytest.raises(ValueError, match="a scale is in"):
            Scale(factor)
