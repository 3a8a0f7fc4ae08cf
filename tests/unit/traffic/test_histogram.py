"""Percentiles from a histogram are those of all samples, to one part in a thousand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.hosts.traffic.received_packets import LatencyHistogram, bins_of, middle_ns

latencies = st.lists(st.integers(0, 2**50), min_size=1, max_size=60)


@given(latencies, st.sampled_from([1, 50, 90, 99, 99.9, 100]))
def test_percentiles_are_those_of_the_samples(values: list[int], percent: float) -> None:
    found = LatencyHistogram.of(np.array(values)).percentile_ns(percent)
    exact = np.sort(values)[max(1, int(np.ceil(len(values) * percent / 100 - 1e-9))) - 1]
    assert found == pytest.approx(exact, rel=1 / 1024, abs=0.5)


def test_bins_rise_with_latencies() -> None:
    values = np.unique(np.concatenate([np.arange(5000), 2 ** np.arange(51), 2 ** np.arange(1, 51) - 1]))
    bins = bins_of(values)
    assert (np.diff(bins) >= 0).all()
    assert (bins[:2048] == np.arange(2048)).all()
    assert (bins_of(np.floor(middle_ns(bins)).astype(np.int64)) == bins).all()


@given(latencies, latencies)
def test_joined_histograms_are_those_of_all_samples(one: list[int], other: list[int]) -> None:
    both = LatencyHistogram.joined([LatencyHistogram.of(np.array(each)) for each in (one, other)])
    assert both.as_json() == LatencyHistogram.of(np.array(one + other)).as_json()
    assert LatencyHistogram.from_json(both.as_json()).as_json() == both.as_json()


def test_nothing_has_no_percentiles() -> None:
    assert LatencyHistogram.joined([]).percentile_ns(99) is None
