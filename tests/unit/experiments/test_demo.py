"""gradbed demo: every system has one, and what it says follows from the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.study import command
from gradbed.experiments.study.demo import load_demo, meanings, run_demo, sentence
from gradbed.experiments.study.evaluation.summary import Comparison
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.systems import SYSTEMS
from gradbed.experiments.tables.metric import Metric
from tests.command import rows
from tests.unit.test_documented_commands import check

TIME = Metric("s", "time")
OWN = [name for name, place in SYSTEMS.items() if place.startswith("gradbed.experiments.systems.")]
"""Tests may have added others."""


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("system", OWN)
def test_every_system_has_one_for_any_user(system: str, user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    study, demo = load_demo(system)
    assert not study.needs_network
    assert study.head.name == f"{system}_demo"
    assert set(demo.says) <= set(study.head.metrics)
    assert study.head.compare is None or (demo.says and demo.next and study.head.figures)


@pytest.mark.parametrize("system", OWN)
def test_what_to_try_next_are_commands(system: str) -> None:
    for line in load_demo(system, "virtual")[1].next:
        name, _, rest = line.removeprefix("sudo ").partition(" ")
        assert name == "gradbed"
        check(rest)


def test_on_the_real_clock_aggregation_is_repeated_in_simulated_time() -> None:
    study, _ = load_demo("aggregation", "real")
    assert {trial.configuration.workload.rounds for trial in study.trials} == {30}  # type: ignore[attr-defined]
    assert [(trial.configuration.clock, trial.other_clock) for trial in study.trials] == [
        ("real", False),
        ("virtual", True),
    ]
    alone, _ = load_demo("aggregation", "virtual")
    assert [trial.configuration.clock for trial in alone.trials] == ["virtual"]


@pytest.mark.parametrize(("is_swept", "told"), [(False, ["begun", "report"]), (True, ["report", "begun", "report"])])
def test_one_trial_and_what_stands_beside_it_have_a_report_once_there_is_a_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_swept: bool, told: list[str]
) -> None:
    study, _ = load_demo("aggregation", "real")
    found: list[str] = []

    def run(study: object, scale: object, options: object, tables_were_written: Any) -> None:
        tables_were_written(tmp_path)
        found.append("begun")
        tables_were_written(tmp_path)

    monkeypatch.setattr(command, "check_machine", lambda study: None)
    monkeypatch.setattr(command, "run_trials", run)
    monkeypatch.setattr(command, "report_of_run", lambda folder, output: found.append("report"))
    command.run_study(replace(study, trials=study.trials * (1 + is_swept)), RunOptions(tmp_path))
    assert found == told


def test_a_system_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no system is called 'nothing'"):
        load_demo("nothing")
    monkeypatch.setattr("gradbed.experiments.study.demo.FILE", "other.yaml")
    with pytest.raises(UserError, match="ndn has no demo"):
        load_demo("ndn")


@pytest.mark.parametrize(
    ("first", "last", "end"),
    [
        (0.02, 0.01, "20 ms with a and 10 ms with b: 50% less."),
        (0.01, 0.015, "10 ms with a and 15 ms with b: 50% more."),
        (0.01, 0.03, "10 ms with a and 30 ms with b: 3 times as much."),
        (0.01, 0.01, "10 ms with a and 10 ms with b, the same."),
        (0.01, 0.010001, "10 ms with a and 10 ms with b, nearly the same."),
        (0.0, 0.01, "0 ms with a and 10 ms with b."),
        (0.01, 0.0, "10 ms with a and 0 ms with b."),
    ],
)
def test_a_sentence_is_true_whichever_way_the_numbers_come_out(first: float, last: float, end: str) -> None:
    comparison = Comparison({}, ["a", "b"], {"time_s": [first, last]}, {})
    assert sentence("It takes", TIME, comparison, "time_s") == f"It takes {end}"


@pytest.mark.thorough
def test_a_network_without_root_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Mininet is installed; else `need_debian` says what is missing."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    study = load_demo("aggregation", "real")[0]
    with pytest.raises(UserError, match=r"^networks in Mininet need root: run with sudo, or with --clock virtual$"):
        command.check_machine(study)


@pytest.mark.thorough
def test_least_loaded_balancing_shortens_the_all_reduce_of_the_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo("training", RunOptions(tmp_path, jobs=1)) == 0
    (folder,) = (path for path in (tmp_path / "training_demo").iterdir() if not path.is_symlink())
    ecmp, least_loaded = rows(folder / "trials.csv")
    assert float(least_loaded["collective_time_s"]) < 0.7 * float(ecmp["collective_time_s"])
    assert float(least_loaded["retransmissions"]) == 0
    assert "% less" in capsys.readouterr().out


def test_a_demo_prints_a_table_its_meaning_a_figure_and_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo("shuffle", RunOptions(tmp_path, jobs=1)) == 0
    printed = capsys.readouterr().out
    (folder,) = (path for path in (tmp_path / "shuffle_demo").iterdir() if not path.is_symlink())
    unicast, coded = (float(row["counted_hops"]) for row in rows(folder / "trials.csv"))
    assert coded < unicast
    said = f"{unicast:.0f} with unicast-nearest and {coded:.0f} with improved: {1 - coded / unicast:.0%} less"
    assert said in " ".join(printed.split())
    assert "16 hosts --16-- 8 edge --16-- 8 aggregation --16-- 4 core" in printed
    assert "None" not in printed
    assert f"figure: {folder / 'demo.png'}" in printed and (folder / "demo.png").stat().st_size > 10_000
    assert printed.index("means:") < printed.index("figure:") < printed.index("next: ./gradbed run shuffle")

    # Results that the host affected show nothing of the network.
    study, demo = load_demo("shuffle")
    results = load_results(folder)
    assert len(meanings(study, demo, results)) == len(demo.says)
    trial = results.trials[0]
    degraded = replace(trial, values={**trial.values, "verdict": "degraded"})
    (line,) = meanings(study, demo, replace(results, trials=(degraded, *results.trials[1:])))
    assert "gradbed demo shuffle --clock virtual" in line
