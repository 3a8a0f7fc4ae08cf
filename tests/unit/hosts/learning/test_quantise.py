"""Gradients as integers: exact within the range of int32, scales that follow."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.hosts.learning.quantise import (
    CHUNK_VALUES,
    EXPONENT_LIMIT,
    HEADROOM_BITS,
    START_EXPONENT,
    VALUE_LIMIT,
    dequantise,
    next_exponent,
    quantise,
)

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


def nearest(value: float, exponent: int) -> tuple[int, bool]:
    """By exact fractions: the nearest integer to value * 2**exponent that fits, and whether that was replaced."""
    if math.isnan(value):
        return 0, True
    if math.isinf(value):
        return (VALUE_LIMIT if value > 0 else -VALUE_LIMIT), True
    exact = round(Fraction(value) * Fraction(2) ** exponent)  # ties to even
    return max(-VALUE_LIMIT, min(VALUE_LIMIT, exact)), abs(exact) > VALUE_LIMIT


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-EXPONENT_LIMIT, -127, -20, 0, 1, 20, 31, 100, 126, 127, EXPONENT_LIMIT])
def test_any_bits_are_rounded_exactly(kind: type[np.floating], exponent: int) -> None:
    bits = np.random.default_rng(exponent + 200).integers(0, 256, 300 * np.dtype(kind).itemsize, dtype=np.uint8)
    tensor = bits.view(kind)
    wanted = [nearest(float(value), exponent) for value in tensor]
    quantised = quantise(tensor, exponent)
    assert quantised.values.tolist() == [value for value, _ in wanted]
    assert quantised.clipped == sum(replaced for _, replaced in wanted)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_first_value_that_does_not_fit_is_clipped(kind: type[np.floating]) -> None:
    for value in (2.0**31, -(2.0**31)):
        assert quantise(np.array([value, 1], kind), 0).values.tolist() == [nearest(value, 0)[0], 1]


def test_long_tensors_are_quantised_in_their_own_memory() -> None:
    """Values that have to be clipped lie at both sides of the borders between chunks."""
    tensor = np.random.default_rng(5).standard_normal(2 * CHUNK_VALUES + 3, dtype=np.float32)
    for place in (0, CHUNK_VALUES - 1, CHUNK_VALUES, 2 * CHUNK_VALUES + 2):
        tensor[place] = 1e9
    wanted = [nearest(float(value), 20)[0] for value in tensor]
    tracemalloc.start()
    quantised = quantise(tensor, 20, tensor.view(np.int32))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.shares_memory(quantised.values, tensor)
    assert tensor.view(np.int32).tolist() == wanted and quantised.clipped == 4
    # A chunk as it is scaled, and as float64 where values are clipped.
    assert peak_bytes < 40 * CHUNK_VALUES


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
