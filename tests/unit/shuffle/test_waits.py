"""On the network packets wait for loans no longer than the schedule says, but for queues; else the run fails."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.systems.shuffle import planning as drawn
from gradbed.hosts.systems.shuffle.sending import Sending
from tests.unit.trials import virtual_trial


def shuffle(
    threshold_us: int, delay_us: int, seed: int = 1, kind: str = "fat-tree:4", sample_bytes: int = 1200, **more: Any
) -> TrialResult:
    samples = {"data": "synthetic", "samples": 48, "sample_bytes": sample_bytes, "storage": 0.2, **more}
    return virtual_trial(
        "shuffle",
        seed=seed,
        samples=samples,
        shuffle={"scheduler": "hop-aware", "threshold_us": threshold_us},
        topology={"kind": kind, "link": {"rate_mbps": 100, "delay_us": delay_us}},
    )


@pytest.mark.parametrize(
    ("threshold_us", "delay_us", "seed", "kind"),
    [(100, 100, 2, "fat-tree:4"), (200, 100, 1, "bcube:4,1"), (400, 20, 1, "fat-tree:4"), (0, 100, 2, "star:8")],
)
def test_long_links_keep_no_packet_longer_than_the_threshold(
    threshold_us: int, delay_us: int, seed: int, kind: str
) -> None:
    """Without the delay in the model of time these waited for 98, 302, 142 and 102 us."""
    found = shuffle(threshold_us, delay_us, seed, kind)
    assert found.failures == []
    assert found.metrics["loans"] > 0
    # Whole microseconds, of the sender and of the receiver.
    assert found.metrics["max_wait_s"] <= 1e-6 * (threshold_us + 2)


def test_samples_of_unequal_sizes_and_several_packets() -> None:
    found = shuffle(400, 30, sample_bytes=4000, spread_bytes=2500)
    assert found.failures == []
    assert found.metrics["loans"] > 0


def test_a_model_that_leaves_the_delay_out_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = drawn.timing
    monkeypatch.setattr(drawn, "timing", lambda *arguments: replace(timing(*arguments), hop_delay_us=0))
    found = shuffle(200, 100)
    assert any("is planned to wait 102 us, by the queues it is 302 us" in line for line in found.failures)


def test_a_threshold_that_the_scheduler_ignores_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = drawn.timing
    monkeypatch.setattr(drawn, "timing", lambda *arguments: replace(timing(*arguments), threshold_us=10_000))
    found = shuffle(50, 100)
    assert any("longer than the threshold, 50 us" in line for line in found.failures)


def test_waits_on_the_network_that_no_queue_explains_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents send what they lend after all that waits for nothing."""
    begin = Sending.begin

    def loans_late(self: Sending, now_us: int) -> None:
        self._queue = deque(sorted(self._queue, key=lambda each: (bool(each.waits_for), each.is_loan)))
        begin(self, now_us)

    monkeypatch.setattr(Sending, "begin", loans_late)
    found = shuffle(2000, 20)
    assert any("for its loans, which can take" in line for line in found.failures)


def test_the_model_of_time_has_the_longest_delay_of_a_link() -> None:
    assert Timing(120, 120, 0, 50).transfer_us(2) == 120 + 120 + 2 * 50
