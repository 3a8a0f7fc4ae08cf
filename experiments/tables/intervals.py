"""Means and medians of repetitions, with 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

CONFIDENCE = 0.95
BOOTSTRAP_RESAMPLES = 9999
BOOTSTRAP_SEED = 1
"""Seed of the resampling, so that equal repetitions give equal intervals."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    """Lower end; NaN with a single repetition."""
    high: float
    """Upper end; NaN with a single repetition."""
    repetitions: int

    @property
    def has_width(self) -> bool:
        """Whether repetitions differ; otherwise there is nothing to show beside the estimate."""
        return self.low < self.high


def confidence_interval(values: Sequence[float], statistic: Literal["mean", "median"] = "mean") -> Interval:
    """Return an estimate of the mean or median with its 95 % confidence interval.

    The mean has that of Student's t distribution (Student, Biometrika 6, 1908), the median that of the bias-corrected
    and accelerated bootstrap (Efron, JASA 82, 1987), or the percentile bootstrap where BCa is not defined. Round
    times are not normally distributed, but their means over a run nearly are; t is for such means.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no repetitions")
    sample = np.asarray(values, float)
    count = len(sample)
    estimate = float(np.mean(sample) if statistic == "mean" else np.median(sample))
    if count == 1:
        return Interval(estimate, float("nan"), float("nan"), 1)
    if np.ptp(sample) == 0:
        return Interval(estimate, estimate, estimate, count)
    from scipy import stats  # takes a second to load

    if statistic == "mean":
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * stats.sem(sample))
        return Interval(estimate, estimate - half, estimate + half, count)
    low, high = _bootstrap(sample)
    return Interval(estimate, low, high, count)


def _bootstrap(sample: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    from scipy import stats

    for method in ("BCa", "percentile"):
        with np.errstate(all="ignore"):
            found = stats.bootstrap(
                (sample,), np.median, confidence_level=CONFIDENCE, n_resamples=BOOTSTRAP_RESAMPLES,
                rng=np.random.default_rng(BOOTSTRAP_SEED), method=method,
            ).confidence_interval  # fmt: skip
        if np.isfinite(found.low) and np.isfinite(found.high):
            break
    return float(found.low), float(found.high)
