"""Runs with workers' fast paths in C, beside runs in which each worker does everything itself: the same in all."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import pytest

from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import find_system
from gradbed.hosts.agents.launching import INTERFACES
from gradbed.hosts.agents.virtual.context import VirtualContext, VirtualInterface
from gradbed.hosts.systems.aggregation.worker.library import UNUSUAL
from gradbed.hosts.systems.aggregation.worker.server_exchange import FastPathResult, RoundFrames, ServerExchange
from gradbed.switch.virtual.ports import HostInterface

LINK = {"rate_mbps": 100, "delay_us": 50, "queue_packets": 100}
WORKLOAD = {"kind": "synthetic", "workers": 4, "values": 7001, "rounds": 3, "window_fragments": 16}

CASES: dict[str, dict[str, Any]] = {
    "no losses": {},
    "losses": {"topology": {"kind": "fat-tree:4", "link": LINK | {"loss": 0.05}}},
    "copies, jitter, bit errors": {
        "topology": {
            "kind": "fat-tree:4",
            "link": LINK | {"duplicate": 0.05, "jitter_us": 50, "reorder": True, "bit_error_rate": 1e-6},
        }
    },
    "marks": {
        "topology": {"kind": "fat-tree:4", "link": LINK | {"queue_packets": 12}},
        "workload": WORKLOAD | {"window_fragments": 64},
    },
    "two jobs, slots of their own": {
        "workload": WORKLOAD | {"jobs": 2},
        "switches": {"slot_policy": "static", "slots": 32},
        "topology": {"kind": "fat-tree:4", "link": LINK | {"loss": 0.01}},
    },
    "NICs that wait, workers that compute": {
        "timing": {"receive_coalescing_us": 200, "compute_us": 900, "compute_distribution": "exponential"},
        "topology": {"kind": "fat-tree:4", "link": LINK | {"loss": 0.01}},
    },
    "faults": {
        "workload": WORKLOAD | {"values": 70_000, "rounds": 1},
        "faults": [
            {"fault": "agent-pause", "agent": "worker 1", "at_ms": 20, "for_ms": 4},
            {"fault": "link-down", "link": ["e1", "a1"], "at_ms": 5},
            {"fault": "link-up", "link": ["e1", "a1"], "at_ms": 11},
        ],
    },
}


def run(case: dict[str, Any]) -> TrialRecord:
    sections = {"clock": "virtual", "topology": {"kind": "fat-tree:4", "link": LINK}, "workload": WORKLOAD, **case}
    return run_single_trial("aggregation", find_system("aggregation").configuration.model_validate(sections), Scale())


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("name", CASES)
def test_fast_paths_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    act = ServerExchange._act

    def counted(self: ServerExchange) -> int | None:
        until_us = act(self)
        calls["agent" if until_us is None else "fast path"] += 1
        return until_us

    carried: list[dict[str, Any]] = []
    emit = VirtualContext.emit

    def noted(self: VirtualContext, event: str, **fields: Any) -> None:
        if event == INTERFACES:
            carried.append({"name": self.name, "job": self.job, **fields})
        emit(self, event, **fields)

    monkeypatch.setattr(ServerExchange, "_act", counted)
    monkeypatch.setattr(VirtualContext, "emit", noted)
    found, found_carried = run(CASES[name]), list(carried)
    assert calls["fast path"] > 10 and calls["agent"] > 0
    monkeypatch.setattr(VirtualInterface, "raw_frames", lambda self: None)
    calls.clear()
    carried.clear()
    expected = run(CASES[name])
    assert calls["fast path"] == 0
    assert found_carried == carried != []
    assert found.row == expected.row
    assert found.tables == expected.tables


def test_frames_without_room_are_counted_as_such_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """NICs that refuse a frame now and then, once each, and with it those behind it."""
    refused: set[bytes] = set()
    send = HostInterface.send

    def refusing(self: HostInterface, frames: Any, *options: Any) -> int:
        for place, row in enumerate(frames):
            content = row.tobytes()
            if zlib.crc32(content) % 16 == 0 and content not in refused:
                refused.add(content)
                return send(self, frames[:place], *options) if place else 0
        return send(self, frames, *options)

    told: list[dict[str, Any]] = []
    emit = VirtualContext.emit

    def noted(self: VirtualContext, event: str, **fields: Any) -> None:
        told.append({"event": event, "name": self.name, **fields})
        emit(self, event, **fields)

    monkeypatch.setattr(HostInterface, "send", refusing)
    monkeypatch.setattr(VirtualContext, "emit", noted)
    found, found_told = run(CASES["no losses"]), list(told)
    assert not found.failures
    refused.clear()
    told.clear()
    monkeypatch.setattr(VirtualInterface, "raw_frames", lambda self: None)
    assert run(CASES["no losses"]).tables == found.tables
    assert told == found_told
    finals = {each["name"]: each["statistics"] for each in told if each["event"] == "final"}
    assert all(finals[f"worker {i}"]["send_failures"] > 0 for i in range(4))


def test_sums_that_fast_paths_take_are_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round may take longer than a worker waits for the server, as long as something comes."""
    patience_us = 6000
    begin = ServerExchange.__init__

    def impatient(self: ServerExchange, *arguments: Any) -> None:
        begin(self, *arguments)
        self._give_up_us = patience_us

    monkeypatch.setattr(ServerExchange, "__init__", impatient)
    found = run({"workload": WORKLOAD | {"values": 70_000, "rounds": 1}})
    assert not found.failures
    assert found.row["round_time_s"] > 2 * patience_us / 1e6


def test_what_is_unusual_is_for_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As frames that begin as none did before."""
    outcomes: Counter[int] = Counter()
    fast_path = RoundFrames.fast_path

    def noted(self: RoundFrames, *arguments: Any) -> FastPathResult:
        found = fast_path(self, *arguments)
        outcomes[min(found.outcome, 0)] += 1
        return found

    monkeypatch.setattr(RoundFrames, "fast_path", noted)
    run(CASES["losses"])
    assert outcomes[UNUSUAL] > 0
    assert outcomes[0] > 10 * outcomes[UNUSUAL] > 0
