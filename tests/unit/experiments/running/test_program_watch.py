"""gradbed up --watch: what is loaded when files change, without a network."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.cli.commands.new import new
from gradbed.common.errors import ProcessLost
from gradbed.controller.entries.planner import EntriesPlanner, EntriesSettings
from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.experiments import custom_program as program_watch
from gradbed.experiments.custom_program import (
    CustomProgram,
    CustomProgramConfiguration,
    CustomProgramSystem,
    ProgramWatch,
)
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask

PATIENCE_S = 60


class Runtime:
    """Takes in what is to be reloaded."""

    __test__ = False

    def __init__(self) -> None:
        self.setups: queue.Queue[NetworkSetup] = queue.Queue()

    def reload(self, setup: NetworkSetup) -> None:
        self.setups.put(setup)

    def next(self) -> SwitchPlan:
        """What the switch holds after the next reload."""
        setup = self.setups.get(timeout=PATIENCE_S)
        assert isinstance(setup.settings, EntriesSettings)
        return EntriesPlanner(setup.settings).plan(setup.topology, shortest_routes(setup.topology))["s1"]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program_watch, "LOOK_EVERY_S", 0.02)
    assert new(tmp_path / "mine") == 0
    return tmp_path / "mine"


@pytest.fixture
def watched(mine: Path) -> Iterator[Runtime]:
    """No entries are named: those beside the program are taken."""
    system = CustomProgramSystem(CustomProgram(mine / "mine.p4"))
    configuration = CustomProgramConfiguration.model_validate({"topology": {"kind": "star:2"}})
    runtime: Any = Runtime()
    with ProgramWatch(system, runtime, TrialTask(configuration, 1, Scale(), mine)):
        yield runtime


def test_entries_beside_the_program_are_reloaded_too(
    mine: Path, watched: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = mine / "entries.yaml"
    entries.write_text("tables: {routes: [{match: {dst_addr: 10.0.0.0/8}, action: drop}]}")
    assert [entry.action for entry in watched.next().entries] == ["MyIngress.drop"]
    entries.unlink()
    assert watched.next().entries == ()
    entries.write_text("tables: {rotues: [], routes: [{match: {dst_addr: 10.0.0.0/9}, action: drop}]}")
    assert len(watched.next().entries) == 1, "what fits is kept"
    assert "entries.yaml:1:10: the P4 program has no table 'rotues'" in capsys.readouterr().err


def test_a_program_that_changes_keeps_the_entries_that_fit(
    mine: Path, watched: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    program = mine / "mine.p4"
    source = program.read_text()
    program.write_text(re.sub(r"\bdrop\b", "discard", source))
    assert {entry.action for entry in watched.next().entries} == {"MyIngress.forward"}
    program.write_text(source.replace("routes", "ways"))
    assert watched.next().entries == ()
    assert "has no table 'routes'" in capsys.readouterr().err


def test_what_goes_wrong_with_the_network_is_told_and_the_watch_goes_on(
    mine: Path, watched: Runtime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A controller that is lost ended the thread: nothing was reloaded any more, and nobody was told."""
    troubles: list[BaseException] = [
        ProcessLookupError(3, "No such process"),
        ConnectionResetError(104, "Connection reset by peer"),
        ProcessLost("the controller ended with status 1; its log: FILE"),
    ]
    seen = []

    def lost(setup: NetworkSetup) -> None:
        seen.append(setup)
        if troubles:
            raise troubles.pop(0)
        watched.setups.put(setup)

    monkeypatch.setattr(watched, "reload", lost)
    program = mine / "mine.p4"
    for change in range(4):
        program.write_text(f"{program.read_text()}// {change}\n")
        end = time.monotonic() + PATIENCE_S
        while len(seen) <= change:
            assert time.monotonic() < end, "it does not look any more"
            time.sleep(0.01)
    watched.next()
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if "not reloaded" in line] == [
        "gradbed: not reloaded: [Errno 3] No such process",
        "gradbed: not reloaded: [Errno 104] Connection reset by peer",
        "gradbed: not reloaded: the controller ended with status 1; its log: FILE",
    ]
