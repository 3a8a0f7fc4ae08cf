"""The fault matrix: which faults there are, what is right, clear and failed, and that the command tells it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results import run_folder
from gradbed.experiments.results.run_folder import RunFiles, TrialRecord
from gradbed.experiments.study import chaos
from gradbed.experiments.study.chaos import (
    LEGACY,
    NOTHING,
    Matrix,
    judged,
    load_chaos,
    run_chaos,
    summary,
    with_chaos,
)
from gradbed.experiments.study.command import INTERRUPTED
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import StudyRun
from tests.conftest import GradbedHere

KILLED = "an agent is killed"

whole_matrix = functools.cache(load_chaos)
"""Which takes seconds."""


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    "system", ["aggregation", "ndn", "shuffle", "compression", "interconnect", "workload", "training"]
)
def test_every_system_has_a_matrix_that_fits_its_network(system: str) -> None:
    study, chaos = whole_matrix(system)
    faults = list(dict.fromkeys(trial.coordinates["fault"] for trial in study.trials))
    assert faults[0] == NOTHING and len(faults) >= 14
    assert len(study.trials) == 10 * len(faults)
    assert chaos.errors.keys() <= set(faults)
    assert all(trial.configuration.clock == "virtual" for trial in study.trials)
    # What is not drawn by chance happens at another time each.
    cut = [trial.configuration.faults for trial in study.trials if trial.coordinates["fault"] == "a link is cut"]
    assert len({faults[0].at_ms for faults in cut}) == 10
    assert system in with_chaos()


def stored(
    packets: int = 100,
    failures: tuple[str, ...] = (),
    time_us: float = 1e6,
    happened: Sequence[str] = ("link-change",),
    scale: float = 1.0,
    duplicates: int = 0,
) -> TrialRecord:
    """happened: faults; as many of the last one as there are links. scale: of links, real over nominal rate.
    duplicates: of the packets, those that the link made.
    """
    faults = [*happened, *happened[-1:] * 11]
    tables: dict[str, list[Any]] = {
        "links": [{"packets": packets, "duplicates": duplicates}, {"packets": 1, "duplicates": 0}],
        "timeline": [
            {"phase": "in-network", "what": "phase", "name": "complete", "time_us": time_us},
            *({"phase": "in-network", "what": "fault", "name": f"{name} ...", "time_us": 5e9} for name in faults),
        ],
    }
    return TrialRecord("digest", 1, {"verdict": "simulated", "scale_factor": scale}, tables, {}, list(failures))


def verdict(fault: str, found: TrialRecord | str, tmp_path: Path) -> tuple[str, float | None]:
    """Of a cell of aggregation that ended so, beside 100 packets and a second without a fault."""
    study, chaos = load_chaos("aggregation", Matrix(quick=True, only=[fault]))
    done = [stored().at({"fault": NOTHING}, 0)]
    broken = {}
    if isinstance(found, str):
        broken[study.trials[1].label] = found
    else:
        done.append(found.at({"fault": fault}, 0))
    cells = judged(study, chaos, StudyRun(tmp_path, RunFiles(tmp_path), tuple(done), 2, broken, False))
    assert [cell.fault for cell in cells] == [NOTHING, fault]
    (row,) = summary(cells)[1:]
    assert row[cells[1].verdict] == 1 and sum(row[each] for each in ("right", "clear error", "failed")) == 1
    return cells[1].verdict, cells[1].packets


CLEAR = "worker 1: no ACK from server 10.0.0.2 for 30 s in round 0"


@pytest.mark.parametrize(
    ("fault", "found", "wanted"),
    [
        ("loss 5 %", stored(300), "right"),
        ("loss 5 %", stored(failures=("round 3: wrong sum",)), "failed"),
        ("loss 5 %", CLEAR, "failed"),
        (KILLED, CLEAR, "clear error"),
        (KILLED, stored(failures=(CLEAR,), happened=["agent-stop"]), "clear error"),
        (KILLED, stored(failures=(CLEAR, "round 3: wrong sum"), happened=["agent-stop"]), "failed"),
        (KILLED, "KeyError: 'no ACK'", "failed"),
        (KILLED, f"{CLEAR}\nand more", "failed"),
        # 3 times the usual ones, and 60 for each second.
        ("reordering", stored(359), "right"),
        ("reordering", stored(361), "failed"),
        ("reordering", stored(361, time_us=2e6), "right"),
        ("reordering", stored(361, scale=0.5), "right"),  # two seconds of the hosts' clocks
        ("reordering", stored(421, scale=0.5), "failed"),
        ("duplication", stored(459, duplicates=100), "right"),  # nobody sent what the link made
        ("duplication", stored(461, duplicates=100), "failed"),
        ("loss 20 %", stored(1848), "right"),  # 3 * 100 / 0.8 ** 8 + 60
        ("loss 20 %", stored(1849), "failed"),
        # It was over before the link was cut; that it was never mended does not matter.
        ("a link is cut", stored(happened=["link-down"]), "right"),
        ("a link is cut", stored(happened=["link-up"]), "failed"),
        ("a link is cut", stored(happened=[]), "failed"),
        ("loss 5 %", stored(happened=[]), "failed"),
    ],
)
def test_what_is_right_clear_and_failed(fault: str, found: TrialRecord | str, wanted: str, tmp_path: Path) -> None:
    told, packets = verdict(fault, found, tmp_path)
    assert told == wanted
    assert packets == (None if isinstance(found, str) else found.tables["links"][0]["packets"] / 100)


@pytest.mark.thorough
def test_the_command_tells_cells_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "_locked", lambda path: None)  # it would be until this process ends
    options = RunOptions(tmp_path)
    assert run_chaos("workload", options, Matrix(quick=True, only=["a link is cut"])) == 0
    printed = capsys.readouterr().out
    assert "2 cells: 2 right, 0 clear error, 0 failed" in printed
    (folder,) = (tmp_path / "workload_chaos").glob("2*")
    assert (folder / "cells.csv").read_text().count("right") == 2
    assert (folder / "chaos.png").exists() and (folder / "report.html").exists()
    before = {path: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.json")}
    assert run_chaos("workload", RunOptions(tmp_path, resume=True), Matrix(quick=True, only=["a link is cut"])) == 0
    assert {path: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.json")} == before


def test_a_seed_is_that_of_the_first_repetition() -> None:
    usual, _ = load_chaos("workload", Matrix(only=["a link is cut"]))
    drawn, _ = load_chaos("workload", Matrix(only=["a link is cut"], seed=70))
    assert [trial.seed - 69 for trial in drawn.trials] == [trial.seed for trial in usual.trials]
    assert [trial.configuration for trial in drawn.trials] == [trial.configuration for trial in usual.trials]
    assert {trial.seed for trial in drawn.trials} == set(range(70, 70 + usual.head.repetitions))


def test_the_commands_seed_comes_to_the_matrix(gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int | None] = []

    def run(system: str, of_run: object, wanted: Matrix, found: object) -> int:
        seeds.append(wanted.seed)
        return 0

    monkeypatch.setattr(chaos, "run_chaos", run)
    assert gradbed_here("chaos", "workload", "--seed", "7").status == 0
    assert gradbed_here("chaos", "workload").status == 0
    assert seeds == [7, None]


def test_a_fault_that_is_not_there_is_one_line() -> None:
    with pytest.raises(UserError, match="workload has no fault 'rain'; it has: nothing, loss 1 %"):
        load_chaos("workload", Matrix(only=["rain"]))


def test_ctrl_c_ends_the_command_not_one_system_of_it(
    gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = {"aggregation": 1, "ndn": INTERRUPTED}
    begun: list[str] = []

    def ended(system: str, *rest: object) -> int:
        begun.append(system)
        return statuses.get(system, 0)

    monkeypatch.setattr(chaos, "run_chaos", ended)
    monkeypatch.setattr(chaos, "with_chaos", lambda: ["aggregation", "ndn", "shuffle"])
    assert gradbed_here("chaos").status == INTERRUPTED
    assert begun == ["aggregation", "ndn"]
    statuses["ndn"] = 0
    assert gradbed_here("chaos").status == 1
    assert begun[2:] == ["aggregation", "ndn", "shuffle"]


def test_the_real_clock_does_a_tenth_and_bmv2_is_on_it() -> None:
    study, _ = load_chaos("aggregation", Matrix(clock="real"))
    assert all(trial.configuration.clock == "real" for trial in study.trials)
    faults = [trial.coordinates["fault"] for trial in study.trials]
    assert len(set(faults)) == len(faults) >= 14
    # In the middle of the time in which faults may happen.
    (cut,) = [
        trial.configuration.faults[0] for trial in study.trials if trial.coordinates["fault"] == "a link is cut"
    ]
    assert cut.at_ms == 13
    with pytest.raises(UserError, match="bmv2 needs the real clock"):
        load_chaos("aggregation", Matrix(clock="virtual", switch="bmv2"))


def test_legacy_switches_are_a_fault_of_the_real_clock_and_absent_where_nothing_runs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert LEGACY not in [trial.coordinates["fault"] for trial in load_chaos("aggregation")[0].trials]
    study, section = load_chaos("aggregation", Matrix(clock="real", only=[LEGACY]))
    plain, legacy = [trial.configuration.model_dump() for trial in study.trials]
    assert (plain["switches"]["legacy"], legacy["switches"]["legacy"]) == ("p4", "openflow")
    assert [fault["switch"] for fault in legacy["faults"]] == [section.forwarding]
    done = (stored().at({"fault": NOTHING}, 0),)
    run = StudyRun(tmp_path, RunFiles(tmp_path), done, 2, {study.trials[1].label: "Open vSwitch is not here"}, False)
    for missing, wanted in (("", "failed"), ("it is not here", "not possible here")):
        monkeypatch.setattr(chaos, "legacy_is_missing", lambda missing=missing: missing)
        cells = judged(study, section, run)
        assert [cell.verdict for cell in cells] == ["right", wanted]
        assert summary(cells)[1][wanted] == 1
