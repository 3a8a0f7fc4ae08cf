"""A sweep from start to end: what is written, what is run again, what is not."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.scale import Scale
from experiments.study.loading import load_study
from experiments.study.results import load_results
from experiments.study.run_files import StoredPoint
from experiments.study.runner import StudyRun, run_study
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


def run(tmp_path: Path, text: str = STUDY, resume: bool = False, factor: float = 1.0) -> StudyRun:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return run_study(load_study(file), Scale(factor), tmp_path / "results", resume)


def runs(trace: Path) -> list[str]:
    return trace.read_text().splitlines() if trace.exists() else []


def test_a_run_leaves_rows_as_csv_and_parquet(tmp_path: Path) -> None:
    done = run(tmp_path)
    with (done.folder / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["coins.count"], row["repetition"], row["seed"]) for row in rows] == [
        (count, repetition, seed) for count in "123" for repetition, seed in (("0", "1"), ("1", "2"))
    ]
    assert {row["verdict"] for row in rows} == {"valid"}
    with (done.folder / "throws.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * (1 + 2 + 3)
    resolved = json.loads((done.folder / "study.json").read_text())
    assert resolved["points"][0]["configuration"]["topology"]["link"]["delay_us"] == 50
    assert json.loads((done.folder / "environment.json").read_text())["processors"] >= 1
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(done.folder / "points.parquet").to_pydict()
    assert table["coins.count"] == [1, 1, 2, 2, 3, 3]
    assert table["heads"] == [int(row["heads"]) for row in rows]


def test_rates_and_times_in_units_of_the_emulated_link_rate(tmp_path: Path) -> None:
    row = run(tmp_path, factor=0.1).done[0].row
    assert row["link_rate_bps"] == 10_000_000
    assert row["throughput_bps_normalised"] == 0.5
    assert row["time_s_normalised"] == 2e7
    assert row["scale_factor"] == 0.1


def test_the_same_seed_makes_the_same_decisions(tmp_path: Path) -> None:
    first, second = (run(tmp_path).done for _ in range(2))
    assert [p.stored.decisions for p in first] == [p.stored.decisions for p in second]
    assert len({json.dumps(p.stored.decisions) for p in first}) > 1


def test_resume_runs_what_is_missing_and_no_more(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path)
    lost = done.done[3].stored.digest
    (done.folder / "points" / f"{lost}.json").unlink()
    trace.unlink()
    again = run(tmp_path, resume=True)
    assert again.folder == done.folder
    assert runs(trace) == ["2 2"]
    assert [p.row["heads"] for p in again.done] == [p.row["heads"] for p in done.done]
    trace.unlink()
    run(tmp_path, resume=True)
    assert runs(trace) == []


def test_resume_keeps_what_an_extended_study_shares(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path)
    trace.unlink()
    again = run(tmp_path, STUDY.replace("[1, 2, 3]", "[2, 3, 4]"), resume=True)
    assert again.folder == done.folder
    assert runs(trace) == ["4 1", "4 2"]
    assert [p.row["coins.count"] for p in again.done] == [2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("change", ["seeds: [1, 3]", "coins: {bias: 0.9}", "topology: {link: {delay_us: 51}}"])
def test_resume_does_not_take_other_points_for_these(tmp_path: Path, trace: Path, change: str) -> None:
    run(tmp_path, STUDY)
    trace.unlink()
    run(tmp_path, STUDY + change, resume=True)
    assert len(runs(trace)) == (3 if "seeds" in change else 6)


def test_another_scale_makes_other_points(tmp_path: Path, trace: Path) -> None:
    run(tmp_path)
    trace.unlink()
    run(tmp_path, resume=True, factor=0.5)
    assert len(runs(trace)) == 6


def test_resume_without_an_earlier_run_starts_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(run(tmp_path, resume=True).done) == 6
    assert "nothing to go on with" in capfd.readouterr().err


def test_points_that_mean_the_same_run_once(tmp_path: Path, trace: Path) -> None:
    done = run(tmp_path, STUDY.replace("coins.count: [1, 2, 3]", "coins.ignored: [1, 2, 3]"))
    assert runs(trace) == ["10 1", "10 2"]
    assert [p.row["coins.ignored"] for p in done.done] == [1, 1, 2, 2, 3, 3]


def test_a_point_that_breaks_does_not_stop_the_others(tmp_path: Path, trace: Path) -> None:
    text = STUDY.replace("coins.count: [1, 2, 3]", "coins.ends: ['', broken, edge]")
    done = run(tmp_path, text)
    assert len(done.done) == 4
    assert done.failed == ("ends=broken, seed 1", "ends=broken, seed 2")
    assert "rolled away" in next((done.folder / "logs").iterdir()).read_text()
    assert [bool(p.stored.failures) for p in done.done] == [False, False, True, True]
    trace.unlink()
    run(tmp_path, text, resume=True)
    assert len(runs(trace)) == 2


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    done = run(tmp_path, STUDY.replace("coins.count: [1, 2, 3]", "coins.ends: ['', interrupt, edge]"))
    assert done.interrupted
    assert len(done.done) == 2
    assert len((done.folder / "points.csv").read_text().splitlines()) == 3


def test_sigkill_in_the_middle_costs_only_the_point_that_ran(tmp_path: Path, trace: Path) -> None:
    slow = STUDY + "coins: {sleep_s: 0.2}\n"
    (tmp_path / "study.yaml").write_text(slow)
    program = (
        "from pathlib import Path; from tests.unit.experiments.study.test_runner import run; import sys;"
        "run(Path(sys.argv[1]), Path(sys.argv[1], 'study.yaml').read_text())"
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
        "coins.count: [1, 2, 3]", "coins.verdict: [valid, doubtful, invalid]\n    coins.count: [7, 8]"
    )
    results = load_results(run(tmp_path, text).folder)
    series = results.series("coins.count", "heads", "coins.verdict")
    assert [point.x for point in series["valid"]] == [7, 8]
    assert [point.verdict for points in series.values() for point in points] == [
        "valid", "valid", "doubtful", "doubtful", "invalid", "invalid",
    ]  # fmt: skip
    assert all(len(point.values) == 2 for point in series["doubtful"])
    assert all(point.values == () and len(point.invalid) == 2 for point in series["invalid"])
    assert len(results.table("throws")) == 6 * (7 + 8)


def test_a_stored_point_survives_its_file(tmp_path: Path) -> None:
    done = run(tmp_path)
    stored = done.done[0].stored
    data = json.loads((done.folder / "points" / f"{stored.digest}.json").read_text())
    assert StoredPoint(**data) == stored
