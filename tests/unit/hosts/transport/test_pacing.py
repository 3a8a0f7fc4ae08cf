"""The token bucket: its rate over 100 ms, whoever wakes up late, and its burst after a pause."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from gradbed.hosts.transport.pacing import TokenBucket

FRAME_BYTES = 1480
WINDOW_US = 100_000


def departures(rate_bps: int, late_us: Callable[[], int], until_us: int, size_bytes: int = FRAME_BYTES) -> list[int]:
    """When a sender that always has a frame sends; late_us: how late it wakes up."""
    bucket, now_us, times = TokenBucket(rate_bps, FRAME_BYTES, 0), 0, []
    while now_us < until_us:
        if bucket.holds(size_bytes, now_us):
            bucket.spend(size_bytes)
            times.append(now_us)
        else:
            now_us = bucket.ready_us(size_bytes) + late_us()
    return times


def rates(times: list[int]) -> list[float]:
    """Of what left in every whole window of 100 ms after the first."""
    ends = range(2 * WINDOW_US, times[-1], WINDOW_US)
    return [8e6 * FRAME_BYTES * sum(end - WINDOW_US <= t < end for t in times) / WINDOW_US for end in ends]


@pytest.mark.parametrize("rate_mbps", [20, 33.3, 100, 1000])
@pytest.mark.parametrize("lateness", ["exact", "a kernel's timers"])
def test_the_rate_is_within_2_percent_over_100_ms(rate_mbps: float, lateness: str) -> None:
    """At 20 Mbit/s one frame is 0.6 % of what leaves in 100 ms."""
    draw = random.Random(1)
    late_us = (lambda: 0) if lateness == "exact" else (lambda: draw.randrange(2_000))
    found = rates(departures(round(1e6 * rate_mbps), late_us, 1_000_000))
    assert len(found) > 5
    assert found == pytest.approx([1e6 * rate_mbps] * len(found), rel=0.02)


def test_no_rounding_adds_up() -> None:
    """A third of a frame each microsecond, for a second."""
    rate_bps = 8 * FRAME_BYTES * 1_000_000 // 3 // 1000
    assert len(departures(rate_bps, lambda: 0, 1_000_000)) == pytest.approx(1000 / 3 + 1, abs=1)


def test_after_a_pause_no_more_than_a_burst_leaves_at_once() -> None:
    bucket = TokenBucket(10_000_000, 3 * FRAME_BYTES, 0)
    while bucket.holds(FRAME_BYTES, 0):
        bucket.spend(FRAME_BYTES)
    bucket.ready_us(FRAME_BYTES)  # somebody waits,
    bucket.rest(500)  # but not any more
    left = 0
    while bucket.holds(FRAME_BYTES, 1_000_000):
        bucket.spend(FRAME_BYTES)
        left += 1
    assert left == 3


def test_who_waits_catches_up_no_more_than_5_ms() -> None:
    bucket = TokenBucket(8 * FRAME_BYTES * 1000, FRAME_BYTES, 0)  # a frame each millisecond
    bucket.spend(FRAME_BYTES)
    assert bucket.ready_us(FRAME_BYTES) == 1000
    left = 0
    while bucket.holds(FRAME_BYTES, 50_000):
        bucket.spend(FRAME_BYTES)
        bucket.ready_us(FRAME_BYTES)
        left += 1
    assert left == 6  # one burst, and 5 ms


def test_an_emptied_bucket_is_full_at_its_time() -> None:
    bucket = TokenBucket(10_000_000, FRAME_BYTES, 0)
    bucket.empty(100, wait_us=700)
    assert not bucket.holds(FRAME_BYTES, 799)
    assert bucket.ready_us(FRAME_BYTES) == 800 and bucket.holds(FRAME_BYTES, 800)


def test_a_new_rate_holds_from_its_moment_on() -> None:
    bucket = TokenBucket(1_000_000, FRAME_BYTES, 0)
    bucket.spend(FRAME_BYTES)
    bucket.set_rate(2_000_000, 5_920)  # half of the frame's bits are there
    assert bucket.ready_us(FRAME_BYTES) == 5_920 + 2_960


@pytest.mark.parametrize(("rate_bps", "burst_bytes"), [(0, 1), (1, 0)])
def test_a_bucket_without_rate_or_size_is_refused(rate_bps: int, burst_bytes: int) -> None:
    with pytest.raises(ValueError, match="needs a rate and a size"):
        TokenBucket(rate_bps, burst_bytes, 0)
