"""Gradients as integers: exact within the range of int32, scales that follow."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hosts.learning.quantise import (
    EXPONENT_LIMIT,
    START_EXPONENT,
    VALUE_LIMIT,
    dequantise,
    next_exponent,
    quantise,
)
from hosts.learning.settings import HEADROOM_BITS

floats = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(st.lists(floats, min_size=1, max_size=20), st.integers(-EXPONENT_LIMIT, EXPONENT_LIMIT))
def test_what_fits_is_rounded_and_the_rest_is_clipped_and_counted(values: list[float], exponent: int) -> None:
    tensor = np.array(values, np.float32)
    quantised = quantise(tensor, exponent)
    assert np.abs(quantised.values.astype(np.int64)).max() <= VALUE_LIMIT
    fits = np.abs(np.rint(tensor.astype(np.float64) * 2.0**exponent)) <= VALUE_LIMIT  # False for not-a-number, too
    assert quantised.clipped == np.count_nonzero(~fits)
    error = np.abs(dequantise(quantised.values.astype(np.int64), exponent) - tensor.astype(np.float64))
    assert (error[fits] <= 0.5 * 2.0**-exponent).all()


def test_clipped_values_are_the_nearest_that_fit() -> None:
    tensor = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.25], np.float32)
    quantised = quantise(tensor, 2)
    assert quantised.values.tolist() == [VALUE_LIMIT, -VALUE_LIMIT, 0, VALUE_LIMIT, -VALUE_LIMIT, 1]
    assert quantised.clipped == 5


def test_rounding_is_to_the_nearest_with_ties_to_even() -> None:
    assert quantise(np.array([0.5, 1.5, 2.5, -0.5, 0.75], np.float32), 0).values.tolist() == [0, 2, 2, 0, 1]


@given(st.integers(1, 64 * VALUE_LIMIT), st.integers(-60, 60), st.integers(-6, 24))
def test_next_scale_leaves_headroom_and_wastes_little(largest: int, exponent: int, headroom_bits: int) -> None:
    total = np.array([0, -largest, largest // 2], np.int64)
    shift = next_exponent(exponent, total, headroom_bits) - exponent
    scaled = largest * 2.0 ** (shift + headroom_bits)
    assert VALUE_LIMIT / 4 < scaled <= VALUE_LIMIT


def test_a_sum_of_zeros_leaves_the_scale_and_scales_are_bounded() -> None:
    assert next_exponent(17, np.zeros(3, np.int64), HEADROOM_BITS) == 17
    assert next_exponent(17, np.zeros(0, np.int64), HEADROOM_BITS) == 17
    assert next_exponent(EXPONENT_LIMIT, np.array([1]), HEADROOM_BITS) == EXPONENT_LIMIT
    assert next_exponent(-EXPONENT_LIMIT, np.array([VALUE_LIMIT]), HEADROOM_BITS) == -EXPONENT_LIMIT


def test_first_round_has_room() -> None:
    assert VALUE_LIMIT / 2**START_EXPONENT > 2000
