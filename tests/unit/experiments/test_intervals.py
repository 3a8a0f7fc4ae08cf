"""Confidence intervals against textbook values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradbed.experiments.tables.metric import confidence_interval


def test_the_mean_by_student_s_t() -> None:
    # t(0.975, 4 degrees of freedom) = 2.776445; the standard error is sqrt(2.5 / 5).
    interval = confidence_interval([1, 2, 3, 4, 5])
    assert interval.estimate == 3
    assert interval.high - interval.estimate == pytest.approx(2.776445 * math.sqrt(0.5), rel=1e-6)
    assert interval.estimate - interval.low == pytest.approx(interval.high - interval.estimate)


def test_the_median_by_the_bootstrap_is_repeatable_and_holds_the_median() -> None:
    values = [1.0, 2.0, 2.5, 3.0, 3.1, 4.0, 9.0, 20.0]
    first, second = (confidence_interval(values, "median") for _ in range(2))
    assert first == second
    assert first.estimate == np.median(values)
    assert 1.0 <= first.low < first.estimate < first.high <= 20.0


def test_one_repetition_has_no_interval() -> None:
    interval = confidence_interval([7.0])
    assert interval.estimate == 7
    assert math.isnan(interval.low) and math.isnan(interval.high)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_equal_repetitions_have_an_interval_without_width(statistic: str) -> None:
    interval = confidence_interval([2.0, 2.0, 2.0], statistic)  # type: ignore[arg-type]
    assert (interval.low, interval.high) == (2.0, 2.0)


def test_two_repetitions_are_enough_for_a_median() -> None:
    interval = confidence_interval([1.0, 3.0], "median")
    assert interval.low <= 2.0 <= interval.high


def test_no_repetition() -> None:
    with pytest.raises(ValueError, match="no repetitions"):
        confidence_interval([])


def test_19_of_20_intervals_hold_the_true_mean() -> None:
    draw = np.random.default_rng(5)
    held = sum(
        interval.low <= 10 <= interval.high
        for interval in (confidence_interval(list(draw.normal(10, 2, 6))) for _ in range(1000))
    )
    assert 930 <= held <= 970
