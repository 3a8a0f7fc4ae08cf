"""Switches that are wrong are failures of the run: programs and entries with a mistake in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradbed.controller.systems.interconnect import entries
from gradbed.controller.systems.interconnect.entries import POLICIES, PolicyName
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.systems.interconnect import trial
from gradbed.hosts.traffic.received_packets import ReceivedPackets
from tests.unit.interconnect.test_trial import run


def run_with(
    folder: Path, patch: pytest.MonkeyPatch, changes: dict[str, tuple[str, str]], **sections: Any
) -> TrialResult:
    """changes: by file of p4src, a text that stands in it once, and what is there instead."""
    sources = folder / "p4src"
    shutil.copytree(P4_SOURCES, sources)
    for name, (text, instead) in changes.items():
        source = sources / name
        before = source.read_text(encoding="utf-8")
        assert before.count(text) == 1
        source.write_text(before.replace(text, instead), encoding="utf-8")
    patch.setattr("gradbed.experiments.programs.P4_SOURCES", sources)
    return run(folder, **sections)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("file", "text", "instead", "words"),
    [
        (
            "optical.p4",
            "(bit<16>)std.ingress_port + (bit<16>)hdr.wavelength.identifier;",
            "(bit<16>)std.ingress_port + (bit<16>)hdr.wavelength.identifier + 1;",
            "stray: not for the switch that they came to",
        ),
        (
            "interconnect.p4",
            "hdr.wavelength.identifier = (bit<12>)wavelength;",
            "hdr.wavelength.identifier = (bit<12>)wavelength % 2 + 1;",
            "stray: not for the switch that they came to",
        ),
        (
            "interconnect.p4",
            "hdr.wavelength.identifier = (bit<12>)wavelength;",
            "hdr.wavelength.identifier = (bit<12>)wavelength + 7;",
            "a wavelength that the optical switch does not have",
        ),
        ("interconnect.p4", "if (wavelength != 0) {", "if (wavelength == 9) {", "no light at an optical switch"),
    ],
)
def test_a_wrong_wavelength_or_optical_switch_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, instead: str, words: str
) -> None:
    found = run_with(tmp_path, monkeypatch, {file: (text, instead)}, kind="optical-electrical:3")
    assert isinstance(found.metrics["loss"], float) and found.metrics["loss"] > 0.1
    assert any(words in line and "no fault explains it" in line for line in found.failures)


def test_a_way_to_the_wrong_switch_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller gives light of a wavelength the address of the unit after the one that it reaches."""
    way = entries._way

    def wrong(*arguments: Any) -> Any:
        *others, reach, (unit, sub_unit) = arguments
        return way(*others, reach, ((unit + 1) % reach.n, sub_unit))

    monkeypatch.setattr(entries, "_way", wrong)
    found = run(tmp_path)
    assert any("stray" in line for line in found.failures)


def test_a_switch_without_its_routes_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = entries.destination_entries
    monkeypatch.setattr(
        "gradbed.controller.systems.interconnect.service.destination_entries",
        lambda reach, place: list(wanted(reach, place))[:-1],
    )
    found = run(tmp_path)
    assert any("no route" in line for line in found.failures)


def test_a_packet_that_an_optical_switch_loses_without_a_word_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in four: neither as light nor as dark."""
    text = "if (!hdr.wavelength.isValid()) {"
    instead = "bit<2> coin; random(coin, 0, 3); if (coin == 0) { mark_to_drop(std); } else " + text
    found = run_with(tmp_path, monkeypatch, {"optical.p4": (text, instead)})
    assert any("and sent or dropped" in line for line in found.failures)


@pytest.mark.parametrize("kind", ["uplink", "optical-switch", "mesh-link"])
def test_what_links_that_fail_cost_is_no_failure(tmp_path: Path, kind: str) -> None:
    found = run(
        tmp_path, failure={"kind": kind, "at_ms": 5}, timing={"control_delay_us": 2000}, traffic={"duration_ms": 12}
    )
    assert found.failures == []


def test_what_a_restarted_switch_drops_is_no_failure(tmp_path: Path) -> None:
    faults = [{"fault": "switch-restart", "switch": "m0_0", "at_ms": 5}]
    found = run(tmp_path, faults=faults, timing={"control_delay_us": 500})
    assert found.failures == []
    assert found.metrics["loss"] > 0


# ---- What the numbers of a run are held to ----


def policy_in_place_of(patch: pytest.MonkeyPatch, asked: PolicyName, done: PolicyName) -> None:
    patch.setattr("gradbed.controller.systems.interconnect.service.POLICIES", {**POLICIES, asked: POLICIES[done]})


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("asked", "done", "words"),
    [
        ("fixed-plane", "random-plane", "though its plane is fixed"),
        ("random-plane", "fixed-plane", "no work of chance"),
        ("least-loaded", "fixed-plane", "no work of chance"),
        ("mesh-first", "least-loaded", "the mesh link from"),
        ("ecmp", "random-plane", "though each flow has one way"),
    ],
)
def test_another_policy_than_asked_for_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: PolicyName, done: PolicyName, words: str
) -> None:
    sections: dict[str, Any] = {"routing": {"policy": asked}, "traffic": {"load": 0.8, "duration_ms": 40}}
    assert run(tmp_path, **sections).failures == []
    policy_in_place_of(monkeypatch, asked, done)
    assert any(words in line for line in run(tmp_path, **sections).failures)


def test_the_most_loaded_plane_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "second = second_load < first_load || (second_load == first_load && coin == 1);"
    instead = "second = second_load > first_load || (second_load == first_load && coin == 1);"
    found = run_with(
        tmp_path,
        monkeypatch,
        {"include/interconnect/choose_path.p4": (text, instead)},
        traffic={"pattern": "stride:4", "load": 1.0, "duration_ms": 40},
    )
    assert any("no work of chance" in line for line in found.failures)


def test_a_detour_that_no_packet_needs_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of another switch of the unit are reached over another unit, as if mesh links were down."""
    monkeypatch.setattr(
        "gradbed.controller.systems.interconnect.entries.Reachability._mesh", lambda self, here, there: False
    )
    found = run(tmp_path)
    assert any("packets, of" in line and "after the warm-up" in line for line in found.failures)


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("loss", lambda value: 0.0, "are missing, but links, switches and hosts dropped"),
        ("loss", lambda value: 2 * value, "are missing, but links, switches and hosts dropped"),
        ("latency_s", lambda value: value / 2, "the mean latency is"),
        ("latency_p99_s", lambda value: value / 1000, "a latency that 99 % do not exceed"),
        ("latency_p99_s", lambda value: 100 * value, "a latency that 99 % do not exceed"),
        ("largest_link_load", lambda value: value / 2, "the largest load of a link"),
        ("mesh_fairness", lambda value: value / 2, "which is no fairness of"),
        ("uplink_max_over_mean", lambda value: value / 2, "which is no fairness of"),
    ],
)
def test_a_metric_that_contradicts_what_was_counted_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[float], float], words: str
) -> None:
    told = trial.metrics

    def altered(*arguments: Any) -> dict[str, Any]:
        values = told(*arguments)
        return {**values, name: change(values[name])}

    sections: dict[str, Any] = {"link": {"queue_packets": 4}, "traffic": {"load": 0.9}}
    assert run(tmp_path, **sections).failures == []
    monkeypatch.setattr(trial, "metrics", altered)
    assert any(words in line for line in run(tmp_path, **sections).failures)


def test_a_bound_of_half_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = trial.most_accepted_bytes
    for factor, words in ((0.5, "is the most that could be"), (4.0, "is told to be possible")):
        monkeypatch.setattr(trial, "most_accepted_bytes", lambda *arguments, by=factor: by * (most(*arguments) or 0))
        assert any(words in line for line in run(tmp_path, traffic={"load": 0.8}).failures)


def test_packets_that_are_faster_than_their_ways_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts write a time 300 us late into every packet."""
    statistics = ReceivedPackets.statistics

    def late(self: ReceivedPackets) -> dict[str, Any]:
        for part in self._parts:
            part["sent_ns"] += 300_000
        return statistics(self)

    monkeypatch.setattr(ReceivedPackets, "statistics", late)
    found = run(tmp_path, traffic={"load": 0.2})
    assert any("where the shortest way takes" in line for line in found.failures)
