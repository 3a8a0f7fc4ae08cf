"""Sums beyond int32: the least shift, ties to even, the same for all who compute it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.hosts.learning.fragments import as_sent, restored, shifted

MAX, MIN = (1 << 31) - 1, -(1 << 31)
sums = st.one_of(
    st.integers(-(1 << 38), 1 << 38),
    # Around the ends of the range, with every shift.
    st.builds(
        lambda end, shift, off: (end << shift) + off,
        st.sampled_from([MAX, MIN]),
        st.integers(0, 6),
        st.integers(-66, 66),
    ),
)


def exact(fragment: list[int]) -> tuple[list[int], int]:
    """The rule, in rational numbers: Python rounds fractions to even."""
    for shift in range(64):
        lanes = [round(Fraction(value, 1 << shift)) for value in fragment]
        if all(MIN <= lane <= MAX for lane in lanes):
            return lanes, shift
    raise AssertionError


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(sums, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_shifts_are_the_least_and_rounding_is_to_even(fragments: list[list[int]]) -> None:
    lanes, shifts = shifted(np.array(fragments, np.int64))
    assert lanes.dtype == np.int32
    assert [(row.tolist(), int(shift)) for row, shift in zip(lanes, shifts, strict=True)] == [
        exact(fragment) for fragment in fragments
    ]
    error = np.abs(restored(lanes, shifts) - np.array(fragments))
    assert (2 * error <= (1 << shifts[:, None])).all()


@pytest.mark.parametrize(
    ("value", "lane", "shift"),
    [
        (MAX, MAX, 0),
        (MIN, MIN, 0),
        (MAX + 1, 1 << 30, 1),
        (2 * MAX, MAX, 1),
        (2 * MAX + 1, 1 << 30, 2),  # halved and rounded to even it would be 2^31
        (2 * MIN - 1, MIN, 1),
        (5 + (1 << 32), 1073741825, 2),
    ],
)
def test_the_ends_of_the_range(value: int, lane: int, shift: int) -> None:
    lanes, shifts = shifted(np.array([[value]], np.int64))
    assert (int(lanes[0, 0]), int(shifts[0])) == (lane, shift)


def test_a_fragment_has_a_shift_of_its_own() -> None:
    total = np.array([1, 3, 1 << 33, 3, 7], np.int64)
    assert as_sent(total, 2).tolist() == [1, 3, 1 << 33, 0, 7]
    assert as_sent(total, 5).tolist() == [0, 0, 1 << 33, 0, 8]
    assert as_sent(total[:2], 64).tolist() == [1, 3]
