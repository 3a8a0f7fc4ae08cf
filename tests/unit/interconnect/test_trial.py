"""Trials of the system on the virtual clock: metrics, accounts, failures, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.interconnect.configuration import InterconnectConfiguration


def configuration(**sections: Any) -> InterconnectConfiguration:
    """link and traffic change single values."""
    return InterconnectConfiguration.model_validate(
        {
            "clock": "virtual",
            "topology": {
                "kind": sections.pop("kind", "optical-electrical:2"),
                "link": {"rate_mbps": 100, "delay_us": 5, **sections.pop("link", {})},
            },
            "traffic": {"load": 0.5, "duration_ms": 20, **sections.pop("traffic", {})},
            **sections,
        }
    )


def run(folder: Path, seed: int = 1, **sections: Any) -> TrialResult:
    return run_trial(find_system("interconnect"), TrialTask(configuration(**sections), seed, Scale(), folder))


def test_everything_arrives_and_agrees_twice_alike(tmp_path: Path) -> None:
    first, second = (run(tmp_path) for _ in range(2))
    assert first.failures == [] and first.metrics == second.metrics
    assert first.metrics["loss"] == 0
    assert first.metrics["saturation_load"] == pytest.approx(7 / 8)
    assert first.metrics["offered_load"] == pytest.approx(0.5, abs=0.06)
    assert first.metrics["accepted_load"] == pytest.approx(first.metrics["offered_load"], abs=0.02)
    assert {row["agrees"] for row in first.tables["hosts"]} == {True}
    assert {row["class"] for row in first.tables["classes"]} == {"mesh", "uplink", "downlink", "light-path"}


def test_full_meshes_carry_no_more_than_their_rate(tmp_path: Path) -> None:
    """Four of a host's seven partners are beyond a mesh link; the other three get what their links carry. What only
    fills queues has not been carried."""
    found = run(tmp_path, link={"queue_packets": 64}, traffic={"load": 1.2, "duration_ms": 30, "warm_up_ms": 10})
    bound = found.metrics["saturation_load"]
    assert isinstance(bound, float)
    assert bound < found.metrics["accepted_load"] <= (4 * bound + 3) / 7


def test_a_hot_spot_is_full_at_the_load_at_which_all_others_fill_its_link(tmp_path: Path) -> None:
    """26 other hosts send it a tenth of theirs each: it is full when they send 1 / 2.6 of their rate."""
    traffic = {"pattern": "hotspot:0.1", "duration_ms": 5}
    for load in (0.2, 0.4):
        found = run(tmp_path, kind="optical-electrical:3", traffic={**traffic, "load": load})
        sent = found.metrics["offered_load"]
        assert isinstance(sent, float)
        assert found.metrics["saturation_load"] == pytest.approx(1)
        assert sent == pytest.approx(load / 2.6, rel=0.2)


def test_losses_of_links_and_queues_are_accounted_for(tmp_path: Path) -> None:
    found = run(tmp_path, link={"loss": 0.05, "duplicate": 0.05, "queue_packets": 4}, traffic={"load": 0.9})
    assert found.failures == []
    drops = {row["cause"]: row["packets"] for row in found.tables["drops"]}
    assert drops["links"] > 0 and drops["queues"] > 0


def test_one_channel_for_a_fibre(tmp_path: Path) -> None:
    found = run(tmp_path, kind="optical-electrical:3", routing={"channels": "uplink"}, traffic={"duration_ms": 5})
    assert found.failures == []
    assert found.metrics["saturation_load"] == pytest.approx(26 / 27)


def test_circuits_wait_for_their_turn(tmp_path: Path) -> None:
    """N = 3: two circuits in turn, so that on each plane half of the light waits for its slot of 1 ms to come."""
    traffic = {"load": 0.3, "duration_ms": 10}
    kind = "optical-electrical:3"
    waves, circuits = (
        run(tmp_path, kind=kind, routing={"channels": channels}, traffic=traffic)
        for channels in ("wavelength", "circuit")
    )
    assert waves.failures == circuits.failures == []
    assert waves.metrics["loss"] == circuits.metrics["loss"] == 0
    assert waves.metrics["saturation_load"] == pytest.approx(26 / 27)
    # In a slot of 1 ms 12 packets of light (80.32 us) begin before the guard time. A light path has half of the
    # slots, both planes together all of them; it carries 27/2 of the 26 pairs of a host.
    assert circuits.metrics["saturation_load"] == pytest.approx(12 * 0.08 * 26 / 27)
    assert circuits.metrics["latency_s"] > 1.2 * waves.metrics["latency_s"]


def test_an_optical_switch_is_cut_off_and_the_controller_hears_of_nothing(tmp_path: Path) -> None:
    """Nothing is lost but what was on its fibres at that moment; and no flow goes without packets afterwards."""
    found = run(
        tmp_path,
        failure={"kind": "optical-switch", "at_ms": 5},
        timing={"control_delay_us": 10_000_000},
        traffic={"duration_ms": 30},
    )
    assert found.failures == []
    assert found.metrics["loss"] < 0.01
    assert all(row["received_packets"] > 0 for row in found.tables["pairs"])


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"kind": "fat-tree:4"}, "--topology: fat-tree:4 is not of the kind optical-electrical:N"),
        ({"kind": "optical-electrical:9"}, "--channels: 9 units have 9 wavelengths"),
        ({"program": {"model": "bmv2"}}, "--channels: BMv2's ports are one channel"),
        ({"routing": {"optical": "openflow"}}, "--optical: Open vSwitch needs the real clock: use --optical p4, or"),
        ({"clock": "real", "routing": {"optical": "openflow"}}, "one channel: take --channels uplink"),
        ({"routing": {"channels": "circuit", "guard_us": 80}}, "1004 bytes takes 81 us, .* take 81 or more"),
        ({"faults": [{"fault": "agent-start", "agent": "traffic of h1", "at_ms": 1}]}, "traffic does not begin anew"),
        ({"routing": {"channels": "circuit", "slot_us": 100}}, "--slot-us: .* all guard time .--guard-us 100.:"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        find_system("interconnect").check(configuration(**sections))
    assert "\n" not in str(caught.value)
