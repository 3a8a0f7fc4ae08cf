"""Captures of trials on the virtual clock: they change no result, and hold what the counters say."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.captures import CaptureOrder
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from tests.pcapng import Seen, read_pcapng
from tests.unit.experiments.virtual_trials import configuration

CONFIGURATION = configuration(
    link={"loss": 0.03, "duplicate": 0.03, "jitter_us": 80, "rate_mbps": 100},
    faults=[{"at_ms": 2.0, "fault": "link-down", "link": ["l1", "s1"]}],
)


def run(folder: Path, order: CaptureOrder) -> TrialResult:
    return run_trial(AggregationSystem(), TrialTask(CONFIGURATION, 1, Scale(), folder, order))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrialResult, Path]:
    folder = tmp_path_factory.mktemp("captured")
    return run(folder, ("all", "h1")), folder / "pcap"


def seen(folder: Path, a: str, b: str) -> list[Seen]:
    """Of a direction, from the file of its link."""
    (file,) = [folder / f"{name}.pcapng" for name in (f"{a}-{b}", f"{b}-{a}") if (folder / f"{name}.pcapng").exists()]
    return [each for each in read_pcapng(file) if each.interface == f"{a}->{b}"]


def test_results_are_the_same_to_the_last_byte(captured: tuple[TrialResult, Path], tmp_path: Path) -> None:
    without, (with_captures, _) = run(tmp_path, False), captured
    assert json.dumps(asdict(without), default=str) == json.dumps(asdict(with_captures), default=str)
    assert not (tmp_path / "pcap").exists()


def test_every_link_has_what_its_counters_say(captured: tuple[TrialResult, Path]) -> None:
    result, folder = captured
    assert result.failures == []
    losses = duplicates = 0
    for row in result.tables["links"]:
        found = seen(folder, row["from"], row["to"])
        lost = [each for each in found if each.comment]
        assert len(lost) == row["losses"] and {each.comment for each in lost} <= {"lost on the link"}
        # A copy that the link makes is at its end alone.
        assert len(found) - len(lost) == row["packets"] - row["duplicates"]
        times_ns = [each.time_ns for each in found]
        assert times_ns == sorted(times_ns)
        losses, duplicates = losses + len(lost), duplicates + row["duplicates"]
    assert losses > 20 and duplicates > 20
    carried = {(row["from"], row["to"]) for row in result.tables["links"]}
    assert sum(len(read_pcapng(file)) > 0 for file in folder.iterdir()) > len(carried) / 2


def test_a_host_sees_what_it_sends_and_gets(captured: tuple[TrialResult, Path]) -> None:
    result, folder = captured
    rows = {(row["from"], row["to"]): row for row in result.tables["links"]}
    host = read_pcapng(folder / "h1.pcapng")
    assert {each.interface for each in host} == {"h1-eth0"}
    sent, got = ([each for each in host if each.flow == flow] for flow in ("out", "in"))
    assert [each.frame for each in sent] == [each.frame for each in seen(folder, "h1", "l1")]
    # With copies, and later by what the link takes.
    assert len(got) == rows["l1", "h1"]["packets"]
    left = [each for each in seen(folder, "l1", "h1") if not each.comment]
    assert {each.frame for each in got} == {each.frame for each in left}
    assert got[0].frame == left[0].frame and got[0].time_ns - left[0].time_ns >= 20_000


def test_what_the_network_has_not_is_said_before_it_is_up(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'l1-s"):
        run(tmp_path, ("l1-s9",))
