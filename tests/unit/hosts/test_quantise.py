"""Gradients as integers: exact sums that never wrap, scales that follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.learning.quantise import (
    EXPONENT_LIMIT,
    HEADROOM_BITS,
    START_EXPONENT,
    dequantise,
    next_exponent,
    quantise,
    value_limit,
)

INT32_MAX = (1 << 31) - 1
floats = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(st.integers(1, 64), st.lists(floats, min_size=1, max_size=20), st.integers(-EXPONENT_LIMIT, EXPONENT_LIMIT))
def test_no_sum_over_all_workers_wraps(workers: int, values: list[float], exponent: int) -> None:
    limit = value_limit(workers)
    tensor = np.array(values, np.float32)
    quantised = quantise(tensor, exponent, limit)
    assert np.abs(quantised.values.astype(np.int64)).max() * workers <= INT32_MAX
    fits = np.abs(np.rint(tensor.astype(np.float64) * 2.0**exponent)) <= limit  # False for not-a-number, too
    assert quantised.clipped == np.count_nonzero(~fits)
    error = np.abs(dequantise(quantised.values, exponent) - tensor.astype(np.float64))
    assert (error[fits] <= 0.5 * 2.0**-exponent).all()


def test_clipped_values_are_the_nearest_that_fit() -> None:
    tensor = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.25], np.float32)
    quantised = quantise(tensor, 2, 1000)
    assert quantised.values.tolist() == [1000, -1000, 0, 1000, -1000, 1]
    assert quantised.clipped == 5


def test_rounding_is_to_the_nearest_with_ties_to_even() -> None:
    assert quantise(np.array([0.5, 1.5, 2.5, -0.5, 0.75], np.float32), 0, 10).values.tolist() == [0, 2, 2, 0, 1]


@given(st.integers(1, 64), st.integers(1, INT32_MAX), st.integers(-60, 60))
def test_next_scale_leaves_headroom_and_wastes_little(workers: int, largest: int, exponent: int) -> None:
    limit = value_limit(workers)
    total = np.array([0, -largest, largest // 2], np.int32)
    shift = next_exponent(exponent, total, limit) - exponent
    scaled = largest * 2.0**shift * (1 << HEADROOM_BITS)
    assert limit / 4 < scaled <= limit


def test_the_most_negative_sum_has_a_magnitude() -> None:
    assert next_exponent(0, np.array([-(1 << 31)], np.int32), value_limit(1)) < 0


def test_a_sum_of_zeros_leaves_the_scale_and_scales_are_bounded() -> None:
    limit = value_limit(8)
    assert next_exponent(17, np.zeros(3, np.int32), limit) == 17
    assert next_exponent(17, np.zeros(0, np.int32), limit) == 17
    assert next_exponent(EXPONENT_LIMIT, np.array([1], np.int32), limit) == EXPONENT_LIMIT
    assert next_exponent(-EXPONENT_LIMIT, np.array([INT32_MAX], np.int32), limit) == -EXPONENT_LIMIT


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_first_round_has_room(workers: int) -> None:
    assert value_limit(workers) / 2**START_EXPONENT >= 31
