"""Counts of latencies in bins that grow with them, so that any percentile is known to one part in 1,024.

Bins as in HdrHistogram: below 2^10 ns every nanosecond has one; above, every power of two is cut into 2^10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRECISION_BITS = 10


def bins_of(latencies_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of each latency, shape (latencies,); negative ones count as 0."""
    values = np.maximum(latencies_ns, 0)
    # The exponent of a float is exact below 2^53 ns, which are three months.
    exponent = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - PRECISION_BITS - 1, 0)
    bins: NDArray[np.int64] = (exponent << PRECISION_BITS) + (values >> exponent)
    return bins


def middle_ns(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """The latency that stands for each bin."""
    exponent = np.maximum((bins >> PRECISION_BITS) - 1, 0)
    low = (bins - (exponent << PRECISION_BITS)) << exponent
    middle: NDArray[np.float64] = low + ((1 << exponent) - 1) / 2
    return middle


class LatencyHistogram:
    """Latencies by bin. bins: rising; counts: of each."""

    def __init__(self, bins: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self.bins, self.counts = bins, counts

    @classmethod
    def of(cls, latencies_ns: NDArray[np.int64]) -> LatencyHistogram:
        return cls(*np.unique(bins_of(latencies_ns), return_counts=True))

    @classmethod
    def joined(cls, histograms: Sequence[LatencyHistogram]) -> LatencyHistogram:
        if not histograms:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bins, places = np.unique(np.concatenate([each.bins for each in histograms]), return_inverse=True)
        counts = np.zeros(len(bins), np.int64)
        np.add.at(counts, places, np.concatenate([each.counts for each in histograms]))
        return cls(bins, counts)

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    def percentile_ns(self, percent: float) -> float | None:
        """The least latency that so many percent do not exceed (nearest rank); None: there is none at all."""
        if not self.count:
            return None
        rank = max(1, int(np.ceil(self.count * percent / 100 - 1e-9)))
        place = int(np.searchsorted(np.cumsum(self.counts), rank, "left"))
        return float(middle_ns(self.bins[place : place + 1])[0])

    def distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latencies in nanoseconds, and the share that is not longer."""
        return middle_ns(self.bins), np.cumsum(self.counts) / max(1, self.count)

    def as_json(self) -> dict[str, list[int]]:
        return {"bins": self.bins.tolist(), "counts": self.counts.tolist()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LatencyHistogram:
        return cls(np.array(value["bins"], np.int64), np.array(value["counts"], np.int64))
