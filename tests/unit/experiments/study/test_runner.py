"""A sweep from start to end: what is written, what is run again, what is not."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results.run_folder import RunFiles, TrialRecord
from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running import digest, runner
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import StudyRun, run_trials
from tests.unit.experiments.study import coin

ROOT = Path(__file__).resolve().parents[4]

STUDY = """
name: tosses
system: coins
sweep:
  product:
    coins.count: [1, 2, 3]
repetitions: 2
"""


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "trace"
    monkeypatch.setenv(coin.TRACE, str(path))
    return path


def run(
    tmp_path: Path, text: str = STUDY, resume: bool = False, factor: float = 1.0, quick: bool = False
) -> StudyRun:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return run_trials(load_study(file, quick), Scale(factor), RunOptions(tmp_path / "results", resume))


def runs(trace: Path) -> list[str]:
    return trace.read_text().splitlines() if trace.exists() else []


def test_a_run_leaves_rows_as_csv_and_parquet(tmp_path: Path) -> None:
    done = run(tmp_path)
    with (done.folder / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["coins.count"], row["repetition"], row["seed"]) for row in rows] == [
        (count, repetition, seed) for count in "123" for repetition, seed in (("0", "1"), ("1", "2"))
    ]
    assert {row["verdict"] for row in rows} == {"valid"}
    with (done.folder / "throws.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * (1 + 2 + 3)
    resolved = json.loads((done.folder / "study.json").read_text())
    assert resolved["trials"][0]["configuration"]["topology"]["link"]["delay_us"] == 50
    assert json.loads((done.folder / "environment.json").read_text())["processors"] >= 1
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(done.folder / "trials.parquet").to_pydict()
    assert table["coins.count"] == [1, 1, 2, 2, 3, 3]
    assert table["heads"] == [int(row["heads"]) for row in rows]


def test_rates_and_times_in_units_of_the_nominal_link_rate(tmp_path: Path) -> None:
    row = run(tmp_path, factor=0.1).done[0].row
    assert row["link_rate_bps"] == 100_000_000
    assert row["throughput_bps_normalised"] == 0.05
    assert row["time_s_normalised"] == 2e8
    assert row["scale_factor"] == 0.1
    unlimited = run(tmp_path, STUDY + "topology: {link: {rate_mbps: null}}", factor=0.1).done[0].row
    assert unlimited["link_rate_bps"] is None
    assert "throughput_bps_normalised" not in unlimited


def test_the_virtual_clock_needs_no_slower_links_and_tells_no_time_of_the_machine(tmp_path: Path) -> None:
    real, virtual = (
        run(tmp_path, f"{STUDY}clock: {clock}\n", factor=0.1).done[0].row for clock in ("real", "virtual")
    )
    assert (real["clock"], real["scale_factor"]) == ("real", 0.1)
    assert (virtual["clock"], virtual["scale_factor"]) == ("virtual", 1.0)
    assert set(real) - set(virtual) == {"seconds"}


def test_the_same_seed_makes_the_same_decisions(tmp_path: Path) -> None:
    first, second = (run(tmp_path).done for _ in range(2))
    assert [p.decisions for p in first] == [p.decisions for p in second]
    assert len({json.dumps(p.decisions) for p in first}) > 1


def test_resume_runs_what_is_missing_and_no_more(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path)
    lost = done.done[3].digest
    (done.folder / "trials" / f"{lost}.json").unlink()
    trace.unlink()
    again = run(tmp_path, resume=True)
    assert again.folder == done.folder
    assert runs(trace) == ["2 2"]
    assert [p.row["heads"] for p in again.done] == [p.row["heads"] for p in done.done]
    trace.unlink()
    run(tmp_path, resume=True)
    assert runs(trace) == []


def test_resume_passes_over_a_newer_run_that_was_interrupted_at_once(
    tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    older, newer = run(tmp_path), run(tmp_path)
    for trial in newer.done[1:]:
        (newer.folder / "trials" / f"{trial.digest}.json").unlink()
    assert run(tmp_path, resume=True).folder == newer.folder
    for trial in newer.done:
        (newer.folder / "trials" / f"{trial.digest}.json").unlink()
    trace.unlink()
    assert run(tmp_path, resume=True).folder == older.folder
    assert runs(trace) == []
    assert f"going on with {older.folder}: 6 of 6 trials are done\n" in capfd.readouterr().err


def test_resume_keeps_what_an_extended_study_shares(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path)
    trace.unlink()
    again = run(tmp_path, STUDY.replace("[1, 2, 3]", "[2, 3, 4]"), resume=True)
    assert again.folder == done.folder
    assert runs(trace) == ["4 1", "4 2"]
    assert [p.row["coins.count"] for p in again.done] == [2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("change", ["seeds: [1, 3]", "coins: {bias: 0.9}", "topology: {link: {delay_us: 51}}"])
def test_resume_does_not_take_other_trials_for_these(tmp_path: Path, trace: Path, change: str) -> None:
    run(tmp_path, STUDY)
    trace.unlink()
    run(tmp_path, STUDY + change, resume=True)
    assert len(runs(trace)) == (3 if "seeds" in change else 6)


def test_another_scale_makes_other_trials(tmp_path: Path, trace: Path) -> None:
    run(tmp_path)
    trace.unlink()
    run(tmp_path, resume=True, factor=0.5)
    assert len(runs(trace)) == 6


def test_resume_without_an_earlier_run_starts_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(run(tmp_path, resume=True).done) == 6
    assert "nothing to go on with" in capfd.readouterr().err


def test_trials_that_mean_the_same_run_once(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path, STUDY.replace("coins.count: [1, 2, 3]", "coins.ignored: [1, 2, 3]"))
    assert runs(trace) == ["10 1", "10 2"]
    assert [p.row["coins.ignored"] for p in done.done] == [1, 1, 2, 2, 3, 3]


ENDINGS = STUDY.replace(
    "  product:\n    coins.count: [1, 2, 3]\nrepetitions: 2",
    """  zip:
    coins.count: [1, 2, 3, 4, 5]
    coins.ends: [edge, broken, '', stuck, '']
    coins.verdict: [valid, valid, invalid, valid, degraded]""",
)


def test_a_trial_that_breaks_is_reported_and_does_not_stop_the_others(
    tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(tmp_path, ENDINGS)
    assert runs(trace) == ["1 1", "2 1", "3 1", "4 1", "5 1"]
    assert [p.row["coins.count"] for p in done.done] == [1, 3, 5]
    assert [p.failures for p in done.done] == [["a coin stands on its edge"], [], []]
    assert done.broken == {
        "count=2, ends=broken, verdict=valid, seed 1": "RuntimeError: the coin rolled away",
        "count=4, ends=stuck, verdict=valid, seed 1": "no answer for 4 s",
    }
    logs = sorted(path.read_text() for path in (done.folder / "logs").iterdir())
    assert "Traceback" in logs[0] and "the coin rolled away" in logs[0]
    assert logs[1] == "no answer for 4 s"
    said = capfd.readouterr().err
    assert "[1/5] count=1, ends=edge, verdict=valid, seed 1: FAILED: a coin stands on its edge" in said
    assert "[2/5] count=2, ends=broken, verdict=valid, seed 1: BROKEN: RuntimeError: the coin rolled away" in said
    assert "[3/5] count=3, ends=, verdict=invalid, seed 1: invalid: made so" in said


def test_resume_repeats_what_failed_or_was_invalid_after_what_is_missing(
    tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path, ENDINGS)
    trace.unlink()
    again = run(tmp_path, ENDINGS, resume=True)
    assert again.folder == first.folder
    assert "3 of 5 trials are done; 2 of them failed or were invalid, and are run again" in capfd.readouterr().err
    # What broke left no file: it is missing. A degraded trial is worth keeping.
    assert runs(trace) == ["2 1", "4 1", "1 1", "3 1"]


def test_the_same_trouble_in_every_trial_ends_the_study(tmp_path: Path, trace: Path) -> None:
    broken = STUDY + "coins: {ends: broken}\n"
    with pytest.raises(UserError, match=r"^count=1, seed 2: RuntimeError: the coin rolled away$"):
        run(tmp_path, broken)
    assert runs(trace) == ["1 1", "1 2"]
    trace.unlink()
    with pytest.raises(UserError, match=r"^RuntimeError: the coin rolled away$"):
        run(tmp_path, "name: one\nsystem: coins\ncoins: {ends: broken}\n")
    trace.unlink()
    # Different troubles may be the trials' own.
    different = STUDY.replace("repetitions: 2", "coins: {ends: stuck}")
    assert list(run(tmp_path, different).broken.values()) == [f"no answer for {count} s" for count in (1, 2, 3)]


def test_resume_does_not_mix_versions_of_the_program(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path)
    trace.unlink()
    monkeypatch.setattr(digest, "source_digest", lambda system: "another version")
    second = run(tmp_path, resume=True)
    assert second.folder != first.folder
    assert len(runs(trace)) == 6
    assert "another version of the program" in capfd.readouterr().err
    assert not {p.digest for p in first.done} & {p.digest for p in second.done}


def test_resume_keeps_the_record_of_every_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path)
    before = (first.folder / "environment.json").read_bytes()
    for number in (2, 3):
        monkeypatch.setattr(runner, "environment", lambda: {"kernel": "changed"})
        run(tmp_path, resume=True)
        assert json.loads((first.folder / f"environment-{number}.json").read_text()) == {"kernel": "changed"}
    assert (first.folder / "environment.json").read_bytes() == before


def test_quick_runs_stay_apart_from_full_ones(tmp_path: Path, trace: Path) -> None:
    """Though some of their trials are the same."""
    text = STUDY + "quick: {sweep.product: {coins.count: [2]}}\n"
    full = run(tmp_path, text)
    rows = (full.folder / "trials.csv").read_bytes()
    trace.unlink()
    small = run(tmp_path, text, resume=True, quick=True)
    assert small.folder != full.folder
    assert runs(trace) == ["2 1", "2 2"]
    assert (full.folder / "trials.csv").read_bytes() == rows
    assert run(tmp_path, text, resume=True).folder == full.folder
    assert run(tmp_path, text, resume=True, quick=True).folder == small.folder
    assert runs(trace) == ["2 1", "2 2"]


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    done = run(tmp_path, STUDY.replace("coins.count: [1, 2, 3]", "coins.ends: ['', interrupt, edge]"))
    assert done.interrupted
    assert len(done.done) == 2
    assert len((done.folder / "trials.csv").read_text().splitlines()) == 3


def test_large_tables_are_not_written_after_every_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial takes a second here, and tables take ten: they are written first and last, not 30 times."""
    clock_s = 0.0
    written: list[int] = []
    write, outcome = runner.write_trial_tables, runner._outcome_words

    def slow_tables(files: RunFiles, planned: Sequence[runner.TrialSpec]) -> list[TrialRecord]:
        nonlocal clock_s
        clock_s += 10
        done = write(files, planned)
        written.append(len(done))
        return done

    def trial_told(trial: TrialRecord) -> str:
        nonlocal clock_s
        clock_s += 1
        return outcome(trial)

    monkeypatch.setattr(runner, "write_trial_tables", slow_tables)
    monkeypatch.setattr(runner, "_outcome_words", trial_told)
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock_s)
    run(tmp_path, STUDY.replace("repetitions: 2", "repetitions: 10"))
    assert written == [1, 30]


@pytest.mark.thorough
def test_sigkill_in_the_middle_costs_only_the_trial_that_ran(tmp_path: Path, trace: Path) -> None:
    slow = STUDY + "coins: {sleep_s: 0.2}\n"
    (tmp_path / "study.yaml").write_text(slow)
    program = (
        "import sys; from pathlib import Path; from gradbed.experiments.study.running import runner;"
        "from tests.unit.experiments.study import coin, test_runner; runner.open_executor = coin.in_this_process;"
        "test_runner.run(Path(sys.argv[1]), Path(sys.argv[1], 'study.yaml').read_text())"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, env=os.environ.copy())
    while len(runs(trace)) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = runs(trace)
    again = run(tmp_path, slow, resume=True)
    assert len(again.done) == 6
    assert len(list((tmp_path / "results" / "tosses").glob("2*"))) == 1
    # Three were done when the fourth ran; it, and those after it, ran now.
    assert len(runs(trace)) - len(before) <= 3
    assert not list(again.folder.rglob("*.part"))


def test_what_figures_are_given(tmp_path: Path) -> None:
    text = STUDY.replace(
        "coins.count: [1, 2, 3]", "coins.verdict: [valid, degraded, invalid]\n    coins.count: [7, 8]"
    )
    results = load_results(run(tmp_path, text).folder)
    series = results.series("coins.count", "heads", "coins.verdict")
    assert [trial.x for trial in series["valid"]] == [7, 8]
    assert [trial.verdict for trials in series.values() for trial in trials] == [
        "valid", "valid", "degraded", "degraded", "invalid", "invalid",
    ]  # fmt: skip
    assert all(len(trial.values) == 2 for trial in series["degraded"])
    assert all(trial.values == () and len(trial.invalid) == 2 for trial in series["invalid"])
    assert len(results.table("throws")) == 6 * (7 + 8)


def test_a_stored_trial_survives_its_file(tmp_path: Path) -> None:
    done = run(tmp_path)
    stored = done.done[0]
    data = json.loads((done.folder / "trials" / f"{stored.digest}.json").read_text())
    assert TrialRecord(**data).at(stored.coordinates, stored.repetition) == stored
