"""Whatever one of those who count gets wrong, another one notices: marks, interfaces, links, switches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.emulation.backend import VirtualBackend
from gradbed.hosts.agents.frames.counts import InterfaceCounts
from gradbed.hosts.traffic.frames import FrameMaker
from gradbed.hosts.traffic.received_packets import ReceivedPackets
from gradbed.hosts.traffic.schedule import Flow, TrafficSchedule
from tests.unit.workload.runs import run, table

Sabotage = Callable[[pytest.MonkeyPatch], None]


def once(change: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """`original`, but the first result is changed."""
    left = [True]

    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        return change(result) if left and left.pop() else result

    return wrapped


def a_host_counts_one_too_few_sent(patch: pytest.MonkeyPatch) -> None:
    counted = InterfaceCounts.add_sent

    def add_sent(self: InterfaceCounts, frames: Any, taken: int, lengths: Any = None) -> None:
        counted(self, frames, taken, lengths)
        self.sent_frames -= self.sent_frames == taken

    patch.setattr(InterfaceCounts, "add_sent", add_sent)


def a_host_counts_other_bytes(patch: pytest.MonkeyPatch) -> None:
    counted = InterfaceCounts.add_received

    def add_received(self: InterfaceCounts, buffer: Any, lengths: Any) -> None:
        counted(self, buffer, lengths)
        self.received_bytes += len(lengths)

    patch.setattr(InterfaceCounts, "add_received", add_received)


def a_link_counts_one_too_many(patch: pytest.MonkeyPatch, receiver: str) -> None:
    told = VirtualBackend.link_statistics

    def link_statistics(self: VirtualBackend) -> Any:
        return [
            dataclasses.replace(row, packets=row.packets + (row.to_node == receiver and row.packets > 0))
            for row in told(self)
        ]

    patch.setattr(VirtualBackend, "link_statistics", link_statistics)


def a_switch_tells_a_drop_too_few(patch: pytest.MonkeyPatch, name: str) -> None:
    told = VirtualBackend.device_statistics

    def device_statistics(self: VirtualBackend) -> Mapping[str, dict[str, int]]:
        return {switch: {**device, name: max(0, device[name] - 1)} for switch, device in told(self).items()}

    patch.setattr(VirtualBackend, "device_statistics", device_statistics)


def a_receiver_forgets_a_packet(patch: pytest.MonkeyPatch) -> None:
    add = ReceivedPackets.add

    def forgetful(self: ReceivedPackets, buffer: Any, lengths: Any, times_ns: Any) -> None:
        add(self, buffer[1:], lengths[1:], times_ns[1:]) if len(lengths) else None

    patch.setattr(ReceivedPackets, "add", forgetful)


def a_receiver_takes_packets_for_repeated_ones(patch: pytest.MonkeyPatch) -> None:
    told = ReceivedPackets.statistics

    def statistics(self: ReceivedPackets) -> dict[str, Any]:
        found = told(self)
        flows = found["flows"]
        if flows["packets"]:
            flows["packets"][0] -= 1
            flows["duplicates"][0] += 1
        return found

    patch.setattr(ReceivedPackets, "statistics", statistics)


def a_sender_claims_more_than_it_sent(patch: pytest.MonkeyPatch) -> None:
    flows = vars(TrafficSchedule).get("flows")
    assert flows is None  # an attribute
    windows = TrafficSchedule.windows

    def more(self: TrafficSchedule) -> Any:
        yield from windows(self)
        first = self.flows[0]
        self.flows[0] = Flow(first.stream, first.begin_ns, first.packets + 1, first.bytes)

    patch.setattr(TrafficSchedule, "windows", more)


def a_sender_marks_all_packets_alike(patch: pytest.MonkeyPatch) -> None:
    made = FrameMaker.frames

    def frames(self: FrameMaker, packets: Any) -> Any:
        return made(self, dataclasses.replace(packets, sequence=np.zeros_like(packets.sequence)))

    patch.setattr(FrameMaker, "frames", frames)


SABOTAGES: dict[str, Sabotage] = {
    "sent": a_host_counts_one_too_few_sent,
    "bytes": a_host_counts_other_bytes,
    "link to switch": lambda patch: a_link_counts_one_too_many(patch, "s1"),
    "link to host": lambda patch: a_link_counts_one_too_many(patch, "h1"),
    "forgotten": a_receiver_forgets_a_packet,
    "repeated": a_receiver_takes_packets_for_repeated_ones,
    "claimed": a_sender_claims_more_than_it_sent,
    "alike": a_sender_marks_all_packets_alike,
}

PLACES: dict[str, dict[str, Any]] = {
    "incast": {"traffic": {"pattern": "incast"}},
    "background": {"traffic": {"pattern": "incast"}, "background": {"workers": ["h1", "h2"], "values": 100}},
    "losses": {"topology": {"link": {"rate_mbps": 100, "loss": 0.1, "queue_packets": 5}}},
}


@pytest.mark.commit_cases(10)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SABOTAGES)
def test_a_count_that_is_wrong_fails_the_run(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SABOTAGES[name](monkeypatch)
    result = run(tmp_path, **PLACES[place])
    assert result.failures


@pytest.mark.parametrize("place", PLACES)
def test_right_counts_do_not(place: str, tmp_path: Path) -> None:
    assert list(run(tmp_path, **PLACES[place]).failures) == []


@pytest.mark.parametrize("name", ["ingress_drops", "no_port_drops"])
def test_a_drop_that_is_not_told_fails_the_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = """
tables:
  routes:
    - {match: {hdr.ipv4.dst_addr: $h1.ip}, action: drop}
    - {match: {hdr.ipv4.dst_addr: $h3.ip}, action: forward, params: {port: 9}}
"""
    assert list(run(tmp_path, entries).failures) == []
    a_switch_tells_a_drop_too_few(monkeypatch, name)
    said, *_ = run(tmp_path, entries).failures
    assert said.startswith("traffic, s1: 300 packets came and 0 copies were made, but 0 left and 299 ended")


def test_traffic_goes_on_without_a_host_that_was_stopped(tmp_path: Path) -> None:
    """What it sent or received is in none of the numbers, since it took its counts along."""
    stop = {"fault": "agent-stop", "agent": "traffic of h1", "at_ms": 5}
    traffic = {"packets": None, "duration_ms": 20, "arrivals": "constant", "load": 0.5}
    whole = run(tmp_path, traffic=traffic)
    result = run(tmp_path, traffic=traffic, faults=[stop])
    assert list(result.failures) == [] and result.metrics["loss"] == 0 and result.metrics["misdelivered"] == 0
    pairs = {(row["sender"], row["receiver"]): row["sent_packets"] for row in table(whole, "pairs")}
    assert {(row["sender"], row["receiver"]): row["sent_packets"] for row in table(result, "pairs")} == {
        pair: sent for pair, sent in pairs.items() if "h1" not in pair
    }


def test_a_switch_that_restarts_keeps_accounts(tmp_path: Path) -> None:
    restart = {"fault": "switch-restart", "switch": "l1", "at_ms": 5}
    traffic = {"packets": None, "duration_ms": 10, "load": 0.9}
    result = run(tmp_path, topology={"kind": "leaf-spine:2,1,2"}, traffic=traffic, faults=[restart])
    assert list(result.failures) == []
    found = {name: int(str(result.metrics[name])) for name in ("sent_packets", "received_packets", "other_drops")}
    assert found["sent_packets"] - found["received_packets"] == found["other_drops"] > 0


def test_a_packet_that_is_told_to_be_of_another_flow_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a host has sent as many as it says."""
    windows = TrafficSchedule.windows

    def shifted(self: TrafficSchedule) -> Any:
        yield from windows(self)
        first, second = self.flows[:2]
        self.flows[0] = dataclasses.replace(first, packets=first.packets + 1)
        self.flows[1] = dataclasses.replace(second, packets=second.packets - 1)

    monkeypatch.setattr(TrafficSchedule, "windows", shifted)
    result = run(tmp_path, traffic={"pattern": "pairs", "flows": 2})
    assert list(result.failures) == ["h1: of a flow with 149 packets 150 arrived at h2"]
