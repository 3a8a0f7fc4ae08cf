"""A workload whose own numbers contradict each other, or its links, has failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.systems.workload import trial
from gradbed.experiments.traffic.checks import flow_contradictions
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.hosts.traffic.received_packets import LatencyHistogram, ReceivedPackets
from tests.unit.workload.runs import run

BUSY: dict[str, Any] = {
    "topology": {"link": {"rate_mbps": 100, "queue_packets": 4, "delay_us": 20}},
    "traffic": {"packets": 600, "pattern": "incast", "load": 1.0},
}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("received_packets", lambda value: value + 100, "are missing, but links, switches and hosts dropped"),
        ("queue_drops", lambda value: 0, "are missing, but links, switches and hosts dropped"),
        ("link_losses", lambda value: value + 7, "are missing, but links, switches and hosts dropped"),
        ("loss", lambda value: 0.0, "packets are told to be lost, not"),
        ("mean_us", lambda value: value / 2, "the mean latency is"),
        ("p50_us", lambda value: 3 * value, "a latency that 50 % do not exceed"),
        ("p90_us", lambda value: value / 5, "latency: 50 % of the packets take up to"),
        ("p99_us", lambda value: value / 2, "latency: 90 % of the packets take up to"),
        ("max_us", lambda value: 2 * value, "a latency that 100 % do not exceed"),
    ],
)
def test_a_metric_that_contradicts_what_was_counted_is_a_failure(
    name: str, change: Callable[[float], float], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(monkeypatch, {name: change})
    assert any(words in line for line in run(tmp_path, **BUSY).failures)


def altered(patch: pytest.MonkeyPatch, changes: dict[str, Callable[[float], float]]) -> None:
    for function in ("traffic_metrics", "loss_metrics"):
        told = getattr(trial, function)

        def other(*arguments: Any, told: Any = told) -> dict[str, Any]:
            values = told(*arguments)
            return {name: changes[name](value) if name in changes else value for name, value in values.items()}

        patch.setattr(trial, function, other)


def test_the_runs_that_these_change_are_right(tmp_path: Path) -> None:
    found = run(tmp_path, **BUSY)
    assert found.failures == []
    assert found.metrics["queue_drops"] > 0


@pytest.mark.parametrize("told_us", [{50.0: 40.0, 99.0: 60.0}, {50.0: 3.0, 99.0: 99.0}, {50.0: 90.0, 99.0: 60.0}])
def test_completion_times_that_flows_contradict_are_found(told_us: dict[float, float | None]) -> None:
    """Of 100 flows that take 1, 2, .. 100 us."""
    rows = [{"completion_us": float(time_us)} for time_us in range(1, 101)]
    assert list(flow_contradictions(rows, {50.0: 50.5, 99.0: 99.01})) == []
    assert any("flows take up to" in line for line in flow_contradictions(rows, told_us))


def test_percentiles_of_another_rank_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 99th percentile of the wrong end."""
    percentile = LatencyHistogram.percentile_ns
    monkeypatch.setattr(LatencyHistogram, "percentile_ns", lambda self, percent: percentile(self, 100 - percent))
    assert any(line.startswith("latency: ") for line in run(tmp_path, **BUSY).failures)


def test_latencies_that_are_counted_in_other_bins_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = LatencyHistogram.of
    monkeypatch.setattr(LatencyHistogram, "of", lambda latencies_ns: of(2 * latencies_ns))
    assert any("that of the histogram" in line for line in run(tmp_path, **BUSY).failures)


def test_packets_that_are_faster_than_their_links_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = ReceivedPackets.statistics

    def late(self: ReceivedPackets) -> dict[str, Any]:
        for part in self._parts:
            part["sent_ns"] += 200_000
        return statistics(self)

    monkeypatch.setattr(ReceivedPackets, "statistics", late)
    assert any("where the shortest way takes" in line for line in run(tmp_path, **BUSY).failures)


def test_more_than_the_hosts_links_carry_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delivered = TrafficResults.delivered_bps.fget
    assert delivered is not None
    monkeypatch.setattr(TrafficResults, "delivered_bps", property(lambda self: 4 * (delivered(self) or 0.0)))
    found = run(tmp_path, traffic={"packets": None, "duration_ms": 20, "load": 0.8})
    assert any("where the hosts' links carry" in line for line in found.failures)


def test_a_link_that_carries_more_than_its_rate_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "busiest_link_load", lambda *arguments: 3.0)
    found = run(tmp_path, topology={"kind": "leaf-spine:2,1,2"}, traffic={"packets": None, "duration_ms": 20})
    assert any("the busiest link carried 3 of its rate" in line for line in found.failures)


STOPPED: dict[str, Any] = {
    "topology": {"link": {"rate_mbps": 100, "queue_packets": 20, "delay_us": 20}},
    "traffic": {"packets": None, "duration_ms": 20, "load": 0.9},
    "faults": [{"fault": "agent-stop", "agent": "traffic of h1", "at_ms": 10}],
}
"""h1's packets arrive until it is stopped, and what it sent is never told."""


def test_mean_and_percentiles_are_of_the_same_packets_where_an_agent_is_stopped(tmp_path: Path) -> None:
    found = run(tmp_path, **STOPPED)
    assert found.failures == []
    assert found.metrics["mean_us"] < found.metrics["p99_us"] <= found.metrics["max_us"]


@pytest.mark.parametrize(
    ("name", "words"), [("mean_us", "that of the histogram"), ("p99_us", "of the packets take up to")]
)
def test_a_latency_that_contradicts_the_others_is_found_there_too(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(monkeypatch, {name: lambda value: value / 2})
    assert any(words in line for line in run(tmp_path, **STOPPED).failures)
