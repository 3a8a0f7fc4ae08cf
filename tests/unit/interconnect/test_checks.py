"""Switches that are wrong are failures of the run: programs and entries with a mistake in them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from controller.systems.interconnect import entries
from experiments.phases import PointResult
from experiments.programs import P4_SOURCES
from tests.unit.interconnect.test_point import run


def run_with(
    folder: Path, patch: pytest.MonkeyPatch, changes: dict[str, tuple[str, str]], **sections: Any
) -> PointResult:
    """changes: by file of p4src, a text that stands in it once, and what is there instead."""
    sources = folder / "p4src"
    shutil.copytree(P4_SOURCES, sources)
    for name, (text, instead) in changes.items():
        source = sources / name
        before = source.read_text(encoding="utf-8")
        assert before.count(text) == 1
        source.write_text(before.replace(text, instead), encoding="utf-8")
    patch.setattr("experiments.programs.P4_SOURCES", sources)
    return run(folder, **sections)


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
        "controller.systems.interconnect.service.destination_entries",
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
