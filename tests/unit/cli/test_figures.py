"""gradbed figures as a command: which studies it runs, and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.study import make_figures
from gradbed.experiments.study.running.executors import RunOptions
from tests.conftest import GradbedHere
from tests.csv_files import read_csv

BUSY_S = 0.3
BUSY = f"import time\nwhile time.process_time() < {BUSY_S}: pass"
"""A process that takes so long of a processor, and so at least as long altogether."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The studies that were to run, in place of running them; the second one fails its checks."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        calls.append((path.stem, {**vars(options), **more}))
        return 1 if len(calls) == 2 else 0

    monkeypatch.setattr(make_figures, "run_study_file", run_study_file)
    return calls


def test_some_figures(gradbed_here: GradbedHere, asked: list[tuple[str, dict[str, Any]]]) -> None:
    assert gradbed_here("figures", "aggregation", "--only", "7,3", "--quick", "--scale", "0.5").status == 1
    assert [stem for stem, _ in asked] == ["aggregation_7_accuracy", "aggregation_3_loss"]
    assert {(options["quick"], options["resume"], options["factor"]) for _, options in asked} == {(True, False, 0.5)}


def test_all_figures_go_on_after_one_that_failed(
    gradbed_here: GradbedHere, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    assert gradbed_here("figures", "aggregation", "--resume").status == 1
    assert [stem for stem, _ in asked] == [path.stem for path in make_figures.studies_of("aggregation").values()]
    assert all(options["resume"] for _, options in asked)


def test_an_interruption_ends_all(gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        calls.append(path)
        return 130

    monkeypatch.setattr(make_figures, "run_study_file", run_study_file)
    assert gradbed_here("figures", "aggregation").status == 130
    assert len(calls) == 1


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Studies that keep a process of their own busy; the third one is interrupted."""
    calls: list[str] = []

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        calls.append(path.stem)
        subprocess.run([sys.executable, "-c", BUSY], check=True)
        return {2: 1, 3: 130}.get(len(calls), 0)

    monkeypatch.setattr(make_figures, "run_study_file", run_study_file)
    return calls


def test_times_have_those_of_other_processes(gradbed_here: GradbedHere, busy: list[str], tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    ended = gradbed_here("figures", "aggregation", "--only", "7,3", "--quick", "--times", str(file))
    assert ended.status == 1
    rows = read_csv(file)
    assert [(row["figure"], row["study"], row["form"], row["clock"], row["status"]) for row in rows] == [
        ("7", "aggregation_7_accuracy", "quick", "", "0"),
        ("3", "aggregation_3_loss", "quick", "", "1"),
    ]
    # The kernel counts in hundredths of a second.
    assert all(float(row["processor_s"]) >= BUSY_S - 0.02 for row in rows)
    assert all(float(row["wall_s"]) >= BUSY_S - 0.02 for row in rows)
    assert {int(row["processors"]) for row in rows} == {len(os.sched_getaffinity(0))}
    assert "aggregation_7_accuracy" in ended.out and "not judged" in ended.out


def test_times_of_what_ended_before_an_interruption(
    gradbed_here: GradbedHere, busy: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "times.csv"
    assert gradbed_here("figures", "aggregation", "--times", str(file)).status == 130
    assert [row["study"] for row in read_csv(file)] == busy[:2] and len(busy) == 3


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("only", "quick", "processors", "minutes", "status", "verdict"),
    [
        (False, False, 2, 29, 0, "goal: 30 min, met"),
        (False, False, 2, 31, 0, "goal: 30 min, missed"),
        (True, False, 2, 29, 0, "not judged: the goal"),
        (False, True, 2, 29, 0, "not judged: the goal"),
        (False, False, 4, 29, 0, "not judged: the goal"),
        (False, False, 2, 29, 1, "not judged: of figure"),
    ],
)
def test_the_goal_is_of_all_figures_in_full_on_two_processors(
    gradbed_here: GradbedHere,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    only: bool,
    quick: bool,
    processors: int,
    minutes: int,
    status: int,
    verdict: str,
) -> None:
    """All figures together take so many minutes of a clock that stands still otherwise."""
    number = 1 if only else len(make_figures.studies_of("aggregation"))
    clock_s = [0.0]

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        clock_s[0] += 60 * minutes / number
        return status

    monkeypatch.setattr(make_figures, "run_study_file", run_study_file)
    monkeypatch.setattr("gradbed.experiments.study.make_figures.time.perf_counter", lambda: clock_s[0])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(processors)))
    options = [*(["--only", "1"] if only else []), *(["--quick"] if quick else [])]
    ended = gradbed_here("figures", "aggregation", "--times", str(tmp_path / "times.csv"), *options)
    # A goal of time is shown; whether figures are right does not hang on it.
    assert ended.status == status
    assert verdict in ended.out


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--times", "times.csv", "--resume"], "--times does not go with --resume"),
        (["--times", "times.csv", "--scheduler", "local"], "--times does not go with --scheduler"),
        (["--times", "nowhere/times.csv"], "--times: there is no folder nowhere"),
        (["--times", "."], "--times: . is a folder"),
    ],
)
def test_times_that_would_say_something_else_are_refused(
    gradbed_here: GradbedHere, asked: list[tuple[str, dict[str, Any]]], options: list[str], said: str
) -> None:
    ended = gradbed_here("figures", "aggregation", *options)
    assert ended.status == 2
    assert said in ended.err
    assert not asked
