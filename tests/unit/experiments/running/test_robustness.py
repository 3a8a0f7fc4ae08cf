"""Whatever links do to packets, and however few slots there are, every sum is bit for bit the reference's and all
counters agree."""

from __future__ import annotations

import pytest

from tests.unit.experiments.virtual_trials import FRAGMENTS, LANES, ROUNDS, events, run

BAD_LINK = {"loss": 0.05, "duplicate": 0.05, "jitter_us": 100, "reorder": True}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_losses_duplicates_and_reordering_on_every_link(seed: int) -> None:
    result = run(seed, link=BAD_LINK, workload={"baselines": ["parameter-server", "ring"]})
    assert result.failures == []
    assert len(result.tables["hosts"]) == 5 + 5 + 4
    found = events(result, 1)
    assert found["duplicate"] > 0
    assert found["resend_summed"] + found["resend_single"] > 0
    assert found["completed"] > 0
    assert all(row["resends"] > 0 for row in result.tables["summary"])


@pytest.mark.parametrize("policy", ["dynamic", "static"])
def test_two_jobs_with_a_quarter_of_the_slots_that_they_need(policy: str) -> None:
    # Two windows of 16 fragments, 8 slots.
    result = run(
        workload={"jobs": 2, "workers": 2, "congestion_control": "none"},
        switches={"slots": 8, "named": ["s1"], "slot_policy": policy},
    )
    assert result.failures == []
    found = events(result)
    assert found["completed"] > 0
    unusable = found.get("collision", 0) + found.get("contention", 0)
    assert unusable > 0 if policy == "dynamic" else unusable == 0


def test_two_jobs_with_few_slots_over_bad_links_with_a_restart_in_the_middle() -> None:
    result = run(
        link=BAD_LINK,
        workload={"jobs": 2, "workers": 2},
        switches={"slots": 8, "named": ["s1"]},
        timing={"control_delay_us": 1000},
        faults=[
            {"at_ms": 10, "fault": "switch-restart", "switch": "s1"},
            {"at_ms": 15, "fault": "link-down", "link": ["l1", "s1"]},
            {"at_ms": 20, "fault": "link-up", "link": ["l1", "s1"]},
        ],
    )
    assert result.failures == []
    assert events(result)["completed"] > 0


def test_without_troubles_nothing_is_resent_and_every_slot_is_used_once() -> None:
    """What the tests of this file and of test_faults.py compare with."""
    result = run()
    assert result.failures == []
    assert result.metrics["resends"] == 0
    # Two ToRs and two spines share the fragments: each is summed below, and once more at the server's ToR.
    assert events(result)["completed"] == 2 * ROUNDS * FRAGMENTS
    assert result.metrics["server_packets"] == FRAGMENTS
    assert FRAGMENTS * LANES == 1280
