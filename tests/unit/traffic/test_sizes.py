"""Sizes of frames and flows: what is drawn has the mean by which rates are made."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gradbed.hosts.traffic.config import Sizes
from gradbed.hosts.traffic.schedule import FLOW_SIZES, draw, flow_frames, has_flows, mean_bytes

RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("sizes", "tolerance"),
    [
        (Sizes(kind="fixed", frame_bytes=1000), 0),
        (Sizes(kind="uniform", least_bytes=64, frame_bytes=1500), 0.01),
        (Sizes(kind="exponential", frame_bytes=600, most_bytes=1514), 0.01),
        (Sizes(kind="web-search"), 0.02),
        (Sizes(kind="data-mining"), 0.1),
        (Sizes(kind="data-mining", most_flow_bytes=1_000_000), 0.02),
        (Sizes(kind="web-search", most_flow_bytes=150_000), 0.02),
    ],
)
def test_what_is_drawn_has_the_mean(sizes: Sizes, tolerance: float) -> None:
    drawn = draw(sizes, 400_000, RANDOM)
    assert drawn.mean() == pytest.approx(mean_bytes(sizes), rel=tolerance)
    assert drawn.min() >= (1 if has_flows(sizes) else 64)


def test_published_flow_sizes_have_their_known_means_and_medians() -> None:
    """Web search: about 1.7 MB in the mean, as quoted for pFabric; data mining: half of the flows are shorter than
    1,100 bytes, and most of the bytes are in flows above 100 MB (VL2, figure 2)."""
    assert mean_bytes(Sizes(kind="web-search")) == pytest.approx(1.7e6, rel=0.05)
    drawn = draw(Sizes(kind="data-mining"), 400_000, RANDOM)
    assert np.median(drawn) == pytest.approx(1100, rel=0.02)
    assert drawn[drawn > 100e6].sum() / drawn.sum() > 0.5


@pytest.mark.parametrize("kind", FLOW_SIZES)
def test_flow_sizes_are_distributions(kind: str) -> None:
    points = FLOW_SIZES[kind]
    assert points[0][1] == 0 and points[-1][1] == 1
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(points))


def test_flows_are_cut_into_frames() -> None:
    frames, last = flow_frames(np.array([1, 958, 959, 2000]), 1000)
    assert frames.tolist() == [1, 1, 2, 3]
    assert last.tolist() == [64, 1000, 64, 42 + 84]
