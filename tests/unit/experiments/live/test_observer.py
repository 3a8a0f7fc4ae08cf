"""Who looks on at a run on the virtual clock changes nothing in it, and tells what links carried."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.live.observer import LiveObserver
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.worker import run_task
from tests.unit.experiments.live.fake_feed import FakeFeed
from tests.unit.experiments.virtual_trials import ROUNDS, configuration

FAULTS = [{"fault": "link-down", "at_ms": 4, "link": ["l1", "s1"]}]
STEPS = [{"command": "step", "step_us": us} for us in (0, 0, 10, 100, 0, 1000, 333)]


def run(folder: Path, observer: TrialObserver = NO_OBSERVER, **sections: Any) -> TrialRecord:
    task = TrialTask(configuration(**sections), 1, Scale(), folder, system="aggregation", digest="trial")
    found = run_task(task, observer=observer)
    assert isinstance(found, TrialRecord), found
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> TrialRecord:
    return run(tmp_path_factory.mktemp("alone"), faults=FAULTS)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, alone: TrialRecord) -> FakeFeed:
    """What was told of the same trial; the comparison is made here, since it is the same run."""
    feed = FakeFeed({"command": "watch", "switch": "l1", "link": 0}, *STEPS, {"command": "run"})
    found = run(tmp_path_factory.mktemp("told"), LiveObserver(feed, paused=True), faults=FAULTS)
    assert json.dumps(asdict(found)) == json.dumps(asdict(alone))
    return feed


def test_rows_are_the_same_with_and_without_somebody_looking(told: FakeFeed) -> None:
    """With pauses and steps, too; see `told`."""
    assert not told.waiting


def test_steps_are_taken_one_by_one(told: FakeFeed) -> None:
    clocks = told.of("clock")
    assert clocks[0]["paused"]
    assert [row["paused"] for row in clocks] == [True, False] * (len(STEPS) + 1)
    times = [row["t_us"] for row in clocks if not row["paused"]]
    assert times == sorted(times)
    # The step of a millisecond is one.
    assert 990 <= times[6] - times[5] <= 1010


def test_the_last_frame_has_all_that_links_carried(told: FakeFeed, alone: TrialRecord) -> None:
    links = told.of("begin")[0]["links"]
    state: dict[str, list[int]] = {}
    for row in told.of("frame"):
        state |= row["links"]
    carried: dict[tuple[str, str], int] = {}
    for row in alone.tables["links"]:
        pair = str(row["from"]), str(row["to"])
        carried[pair] = carried.get(pair, 0) + int(row["packets"])
    for number, link in enumerate(links):
        for back, pair in enumerate(((link["a"], link["b"]), (link["b"], link["a"]))):
            packets = state.get(str(2 * number + back), [0])[0]
            # Frames begin with the network, the table's phases when agents are ready.
            assert carried.get(pair, 0) <= packets <= carried.get(pair, 0) + 5, pair


def test_rounds_phases_faults_and_switches_are_told(told: FakeFeed) -> None:
    rounds = {(row["phase"], row["round"]) for row in told.of("value") if row["name"] == "seconds"}
    phases = [row["name"] for row in told.of("phase") if row["begins"]]
    assert rounds == {(phase, number) for phase in phases for number in range(ROUNDS)}
    assert "l1" in told.of("event")[0]["text"]
    watched = [row for row in told.of("switch") if row["switch"] == "l1"]
    assert watched
    plans = {row["switch"] for row in told.of("plan")}
    assert plans == {node["name"] for node in told.of("begin")[0]["nodes"] if node["tier"] is not None}
    assert told.rows[-1]["kind"] == "end"


def test_when_the_page_has_gone_a_paused_clock_goes_on(tmp_path: Path, alone: TrialRecord) -> None:
    class Gone(FakeFeed):
        def commands(self, timeout_s: float = 0.0) -> list[dict[str, Any]]:
            self.is_open = False
            return []

    found = run(tmp_path, LiveObserver(Gone(), paused=True), faults=FAULTS)
    assert found.row == alone.row
