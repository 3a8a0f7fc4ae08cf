"""One worker's part in a ring all-reduce: segments, steps, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.formats.ring import RingFlags
from gradbed.hosts.collectives.ring_all_reduce import RingMessage, RingReduction, segment_bounds

LARGEST = (1 << 31) - 1


@given(st.integers(0, 1000), st.integers(1, 64))
def test_segments_cover_all_fragments_evenly(fragments: int, workers: int) -> None:
    bounds = [segment_bounds(segment, fragments, workers) for segment in range(workers)]
    assert [fragment for first, end in bounds for fragment in range(first, end)] == list(range(fragments))
    sizes = [end - first for first, end in bounds]
    assert max(sizes) - min(sizes) <= 1


def worker(index: int, workers: int = 3, value: int = 1) -> RingReduction:
    """With one fragment of one lane for each worker."""
    return RingReduction(5, index, workers, np.full((workers, 1), value, np.int32))


def message(step: int, fragment: int, value: int, **fields: object) -> RingMessage:
    return replace(RingMessage(5, step, fragment, np.array([value], np.int32)), **fields)  # type: ignore[arg-type]


def summary(messages: list[RingMessage] | None) -> list[tuple[int, int, int]]:
    assert messages is not None
    return [(each.step, each.fragment, int(each.lanes[0])) for each in messages]


def test_the_steps_of_one_worker() -> None:
    """Worker 1 of 3 begins with segment 1, adds to segments 0 and 2 in turn, and completes the latter."""
    ring = worker(1, value=10)
    assert summary(ring.begin()) == [(0, 1, 10)]
    assert summary(ring.accept(message(0, 0, 3))) == [(1, 0, 13)]
    assert summary(ring.accept(message(1, 2, 7))) == [(2, 2, 17)]
    assert ring.missing == 2
    assert summary(ring.accept(message(2, 1, 21))) == [(3, 1, 21)]
    assert summary(ring.accept(message(3, 0, 18))) == []
    assert ring.finished
    assert ring.sums[:, 0].tolist() == [18, 21, 17]


def test_a_sum_that_leaves_int32_goes_on_in_halves_in_any_order() -> None:
    one, two = worker(1, value=LARGEST), worker(2, value=-5)
    halves = one.accept(message(0, 0, LARGEST))
    assert halves is not None
    assert [half.half for half in halves] == [RingFlags.LOW, RingFlags.HIGH]
    for order in (halves, halves[::-1]):
        two = worker(2, value=-5)
        assert two.accept(order[0]) == []
        assert two.accept(order[0]) == []
        (whole,) = two.accept(order[1]) or []
        assert (whole.step, whole.shift, int(whole.lanes[0]) << whole.shift) == (2, 1, 2 * LARGEST - 6)
        assert two.sums[0, 0] == 2 * LARGEST - 6


def test_one_worker_has_the_sum_at_once() -> None:
    ring = worker(0, workers=1, value=4)
    assert ring.begin() == []
    assert ring.finished
    assert ring.sums.tolist() == [[4]]


@pytest.mark.parametrize(
    "wrong",
    [
        message(0, 0, 1, round=4),
        message(0, 3, 1),
        message(1, 0, 1),
        message(0, 1, 1),
        message(3, 0, 1),
        message(9, 0, 1),
    ],
)
def test_what_nobody_sends_now_is_refused(wrong: RingMessage) -> None:
    ring = worker(1)
    assert ring.accept(wrong) is None
    assert summary(ring.accept(message(0, 0, 1))) == [(1, 0, 2)]
    assert ring.accept(message(0, 0, 1)) is None
