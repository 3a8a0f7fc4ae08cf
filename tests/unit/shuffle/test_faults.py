"""Links, switches and workers that go: what can still be brought is brought, and what cannot is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from tests.unit.trials import virtual_trial

SYNTHETIC = {"data": "synthetic", "samples": 64, "sample_bytes": 8000, "spread_bytes": 300}


def faulty(
    folder: Path, *faults: dict[str, Any], samples: dict[str, Any] = SYNTHETIC, **sections: Any
) -> TrialResult:
    return virtual_trial(
        "shuffle", folder, samples=samples, faults=list(faults), timing={"control_delay_us": 500}, **sections
    )


def test_a_link_that_goes_is_no_failure_if_all_arrives(tmp_path: Path) -> None:
    """Packets go another way, so nobody can say how many links they take; what workers hold is still right."""
    found = faulty(tmp_path, {"fault": "link-down", "link": ["a1", "c1"], "at_ms": 1})
    assert found.failures == []
    assert found.metrics["repairs"] > 0


def test_a_link_that_goes_and_comes_in_each_of_two_shuffles(tmp_path: Path) -> None:
    found = faulty(
        tmp_path,
        {"fault": "link-down", "link": ["a1", "c1"], "at_ms": 1},
        {"fault": "link-up", "link": ["a1", "c1"], "at_ms": 9},
        {"fault": "link-down", "link": ["a3", "c1"], "at_ms": 10},
        shuffle={"shuffles": 2},
    )
    assert found.failures == []


@pytest.mark.parametrize("switch", ["c1", "e2"])
@pytest.mark.parametrize("unicast", ["trees", "routes"])
def test_a_switch_that_restarts_is_no_failure_if_all_arrives(unicast: str, switch: str, tmp_path: Path) -> None:
    fault = {"fault": "switch-restart", "switch": switch, "at_ms": 0.5}
    found = faulty(tmp_path, fault, shuffle={"unicast": unicast})
    assert found.failures == []
    assert found.metrics["repairs"] > 0


def test_a_link_that_gets_slower_changes_no_counts(tmp_path: Path) -> None:
    """Nothing goes another way and nothing is lost: the counts are those of the schedule."""
    found = faulty(
        tmp_path,
        {"fault": "link-change", "link": ["a1", "c1"], "at_ms": 1, "change": {"rate_mbps": 20}},
        samples={**SYNTHETIC, "samples": 32},
    )
    assert found.failures == [] and found.metrics["counted_hops"] == found.metrics["hops"]


STOP = {"fault": "agent-stop", "agent": "worker 3", "at_ms": 1}


@pytest.mark.parametrize("at_ms", [0, 0.5])
def test_what_a_worker_that_stops_had_to_send_others_send(at_ms: float, tmp_path: Path) -> None:
    """With this seed others store all that the worker had."""
    found = faulty(tmp_path, {**STOP, "at_ms": at_ms}, samples={**SYNTHETIC, "storage": 0.3})
    assert found.failures == []
    assert found.metrics["requests"] > 0
    assert 0.05 < found.metrics["shuffle_time_s"] < 1, "they are asked after the sender was, some times"


def test_what_nobody_else_has_ends_the_run_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"worker \d+: sample \d+ does not come, though h4 should have it") as caught:
        faulty(tmp_path, STOP, samples={**SYNTHETIC, "storage": 1 / 16})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("at_ms", [1, 60])
def test_a_worker_that_starts_again_gets_all_that_it_needs(at_ms: float, tmp_path: Path) -> None:
    """Before and after it has told that it has everything."""
    found = faulty(
        tmp_path,
        {**STOP, "at_ms": at_ms},
        {**STOP, "fault": "agent-start", "at_ms": at_ms + 5},
        samples={**SYNTHETIC, "sample_bytes": 20_000},
    )
    assert found.failures == []


def test_the_master_is_no_exception(tmp_path: Path) -> None:
    found = faulty(
        tmp_path,
        {**STOP, "agent": "master"},
        samples={**SYNTHETIC, "storage": 0.8},
        shuffle={"scheduler": "coded-master"},
    )
    assert found.failures == []


# ---- Time ----


def test_coding_and_decoding_take_time_and_plain_samples_take_none(tmp_path: Path) -> None:
    """A packet takes 96 us on its link: 1 ms for each sum and each decoding is seen in the time of the shuffle."""
    times = {}
    for scheduler in ("unicast-nearest", "coded-largest"):
        for compute_us in (0, 1000):
            found = virtual_trial(
                "shuffle",
                tmp_path,
                samples={"samples": 64},
                shuffle={"scheduler": scheduler},
                timing={"compute_us": compute_us},
            )
            assert found.failures == []
            times[scheduler, compute_us] = found.metrics["shuffle_time_s"]
    assert times["unicast-nearest", 0] == times["unicast-nearest", 1000]
    assert times["coded-largest", 1000] > times["coded-largest", 0] + 2e-3


def test_waits_are_nominal_in_the_schedule_and_on_the_network(tmp_path: Path) -> None:
    """At a scale of 0.03 links are 33 times as slow, and all times that are told are what they would be at 1."""
    told = {}
    for factor in (1.0, 0.03):
        found = virtual_trial(
            "shuffle",
            tmp_path,
            factor=factor,
            samples={"data": "synthetic", "samples": 48, "sample_bytes": 1200, "storage": 0.2},
            shuffle={"scheduler": "hop-aware"},
            topology={"kind": "fat-tree:4", "link": {"rate_mbps": 100, "delay_us": 10}},
        )
        assert found.failures == []
        told[factor] = [row["planned_wait_s"] for row in found.tables["waits"]]
        assert found.metrics["planned_wait_s"] == max(told[factor])
    assert max(told[1.0]) > 0
    assert told[0.03] == pytest.approx(told[1.0], rel=0.02, abs=2e-6)
