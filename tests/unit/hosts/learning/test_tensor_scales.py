"""Tensors as integers at scales of their own, whatever order they come in."""

from __future__ import annotations

import numpy as np

from gradbed.hosts.learning.quantise import START_EXPONENT, TensorScales


def test_scales_follow_the_sums_tensor_by_tensor() -> None:
    scales = TensorScales([2, 3], headroom_bits=6)
    assert scales.values == 5
    gradient = np.array([1.0, -2.0, 1e-6, 2e-6, -3e-6])
    contribution = scales.quantised([0, 1], gradient)
    assert contribution.clipped == 0
    assert contribution.values.tolist() == [1 << 20, -(2 << 20), 1, 2, -3]
    mean = scales.mean([0, 1], 4 * contribution.values.astype(np.int64), workers=4)
    np.testing.assert_array_equal(mean, contribution.values / 2**START_EXPONENT)
    # 8 * 2^20 is 24 bits long, 12 is 4: each grows to 31 - 6 - 1 bits.
    assert scales.exponents == [START_EXPONENT, START_EXPONENT + 20]
    finer = scales.mean([0, 1], scales.quantised([0, 1], gradient).values.astype(np.int64), workers=1)
    np.testing.assert_allclose(finer[2:], gradient[2:], rtol=1e-6)


def test_another_order_of_tensors_makes_no_difference_but_to_where_they_lie() -> None:
    one, other = TensorScales([2, 3]), TensorScales([2, 3])
    gradient = np.random.default_rng(1).normal(size=5)
    for _ in range(3):
        forwards = one.quantised([0, 1], gradient).values
        backwards = other.quantised([1, 0], np.concatenate([gradient[2:], gradient[:2]])).values
        np.testing.assert_array_equal(forwards, backwards)
        means = one.mean([0, 1], forwards.astype(np.int64), 1), other.mean([1, 0], backwards.astype(np.int64), 1)
        np.testing.assert_array_equal(means[0], np.concatenate([means[1][3:], means[1][:3]]))
        assert one.exponents == other.exponents


def test_a_scale_may_be_the_same_in_all_rounds() -> None:
    scales = TensorScales([2, 3], exponent=10)
    for _ in range(2):
        values = scales.quantised([0, 1], np.array([1.0, 2.0, 3.0, 4.0, 1e-9])).values
        assert values.tolist() == [1024, 2048, 3072, 4096, 0]
        assert scales.mean([0, 1], values.astype(np.int64), 2).tolist() == [0.5, 1.0, 1.5, 2.0, 0.0]


def test_what_does_not_fit_is_counted() -> None:
    scales = TensorScales([4])
    found = scales.quantised([0], np.array([1e9, float("nan"), float("-inf"), 1.0]))
    assert found.clipped == 3
    assert found.values.tolist() == [(1 << 31) - 1, 0, -(1 << 31) + 1, 1 << 20]
