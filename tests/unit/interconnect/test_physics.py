"""No number that physics forbids comes out of a run; where one would, the run has failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.systems.interconnect.links import MeasurementWindow
from gradbed.hosts.traffic.received_packets import ReceivedPackets
from tests.unit.interconnect.test_trial import run

FRAME_TIMES = 80e-6 / 20e-3
"""A frame's share of the measured time: the end of one that was being sent."""


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("channels", ["wavelength", "uplink", "circuit"])
@pytest.mark.parametrize("queue_packets", [32, pytest.param(1000, marks=pytest.mark.nightly)])  # longer, as full
def test_full_queues_make_no_load_above_one(tmp_path: Path, channels: str, queue_packets: int) -> None:
    """Twice of what hosts can send: what waits in long queues is sent for long after the measured time."""
    found = run(
        tmp_path,
        kind="optical-electrical:3",
        routing={"channels": channels},
        link={"queue_packets": queue_packets},
        traffic={"load": 2.0, "duration_ms": 25, "warm_up_ms": 5},
    )
    assert found.failures == []
    assert 0.9 < found.metrics["largest_link_load"] <= 1 + FRAME_TIMES
    assert found.metrics["accepted_load"] <= found.metrics["accepted_bound"] <= 1 + FRAME_TIMES
    assert found.metrics["accepted_load"] < found.metrics["offered_load"]
    assert all(row["load"] is None or row["load"] <= 1 + FRAME_TIMES for row in found.tables["classes"])


@pytest.mark.thorough
def test_what_arrives_of_circuits_is_within_a_bound_that_holds(tmp_path: Path) -> None:
    """N = 4: 15 of 63 stay in their unit, and 96 light paths carry 12 packets in every third slot for 64 hosts."""
    found = run(
        tmp_path,
        kind="optical-electrical:4",
        routing={"channels": "circuit"},
        link={"queue_packets": 8},
        traffic={"load": 1.0, "duration_ms": 45, "warm_up_ms": 5},
    )
    most = 15 / 63 + 96 * 12 * 0.08 / 3 / 64
    assert found.failures == []
    assert found.metrics["saturation_load"] == pytest.approx(63 / 48 * 96 * 12 * 0.08 / 3 / 64)
    assert 0.8 * most < found.metrics["accepted_load"] <= found.metrics["accepted_bound"] < 1.15 * most


def test_copies_that_links_make_are_not_accepted_twice(tmp_path: Path) -> None:
    traffic = {"load": 0.6, "duration_ms": 20}
    found = run(tmp_path, link={"duplicate": 0.3, "queue_packets": 64}, traffic=traffic)
    assert found.failures == []
    assert found.metrics["accepted_load"] <= found.metrics["offered_load"]
    assert found.metrics["largest_link_load"] <= 1 + FRAME_TIMES


def test_what_was_on_long_links_when_the_time_began_is_within_the_bound(tmp_path: Path) -> None:
    """Half of the hosts send for 2 ms, each to its neighbour, so that none waits, and are silent for the 2 ms that
    are measured; a link is 1 ms long."""
    burst = {"arrivals": "on-off", "bursts": "constant", "on_us": 2000, "off_us": 2000}
    found = run(
        tmp_path, link={"delay_us": 1000}, traffic={"pattern": "pairs", "warm_up_ms": 2, "duration_ms": 4, **burst}
    )
    assert found.failures == []
    assert found.metrics["offered_load"] == 0 < found.metrics["accepted_load"] <= found.metrics["accepted_bound"]


def test_a_packet_of_which_a_host_does_not_tell_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = ReceivedPackets.add

    def all_but_the_first(self: ReceivedPackets, buffer: Any, lengths: Any, times_ns: Any) -> None:
        skipped = 0 if hasattr(self, "skipped") else 1
        self.skipped = True  # type: ignore[attr-defined]
        add(self, buffer[skipped:], lengths[skipped:], times_ns[skipped:])

    monkeypatch.setattr(ReceivedPackets, "add", all_but_the_first)
    found = run(tmp_path)
    assert "packets by their marks" in found.failures[0]


def halved(whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: value if (value := whole(*arguments)) is None else value / 2


@pytest.mark.parametrize("load", [0.9, 1.5])
def test_a_link_that_carries_more_than_it_can_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: float
) -> None:
    monkeypatch.setattr(MeasurementWindow, "capacity_bytes", halved(MeasurementWindow.capacity_bytes))
    found = run(tmp_path, traffic={"load": load})
    assert found.failures[0].startswith(("mesh", "light-path")) and "bytes where it can carry" in found.failures[0]


def test_more_than_the_bound_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "gradbed.experiments.systems.interconnect.trial.most_accepted_bytes"
    monkeypatch.setattr(module, lambda topology, window, *_: 0.49 * window.seconds * 8 * 100e6 / 8)
    found = run(tmp_path, traffic={"load": 0.6})
    assert any("was accepted, where 0.4900 is the most that could be" in line for line in found.failures)


@pytest.mark.parametrize("word", ["received", "sent"])
def test_hosts_that_tell_another_tale_than_their_links_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """One in thirty bytes of what comes in time, or of what is sent, is not told."""
    if word == "received":
        told = ReceivedPackets.statistics

        def less(self: ReceivedPackets) -> dict[str, Any]:
            statistics = told(self)
            return {**statistics, "measured_bytes": statistics["measured_bytes"] * 29 // 30}

        monkeypatch.setattr(ReceivedPackets, "statistics", less)
    else:
        entered = MeasurementWindow.entered_bytes
        monkeypatch.setattr(MeasurementWindow, "entered_bytes", lambda *arguments: entered(*arguments) * 29 // 30)
    found = run(tmp_path, traffic={"load": 0.8})
    *told_of, more = found.failures
    assert told_of and all(f" {word} " in line and "its link knows of" in line for line in told_of)
    assert more.startswith("and ")
