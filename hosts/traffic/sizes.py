"""Sizes of frames and flows.

The flow sizes are those of two clusters as their publications show them, at the points where most simulators read the
curves, with straight lines between these:

- web search: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 2.2, figure 4 (and as the web
  search workload of "pFabric", SIGCOMM 2013).
- data mining: A. Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure 2 (and as
  the data mining workload of "pFabric").
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.traffic.config import FlowSizes, Sizes

_Points = tuple[tuple[float, float], ...]

FLOW_SIZES: dict[FlowSizes, _Points] = {
    "web-search": (
        (0, 0.0),
        (10e3, 0.15),
        (20e3, 0.2),
        (30e3, 0.3),
        (50e3, 0.4),
        (80e3, 0.53),
        (200e3, 0.6),
        (1e6, 0.7),
        (2e6, 0.8),
        (5e6, 0.9),
        (10e6, 0.97),
        (30e6, 1.0),
    ),
    "data-mining": (
        (0, 0.0),
        (180, 0.1),
        (216, 0.2),
        (560, 0.3),
        (900, 0.4),
        (1100, 0.5),
        (1870, 0.6),
        (3160, 0.7),
        (10e3, 0.8),
        (400e3, 0.9),
        (3.16e6, 0.95),
        (100e6, 0.98),
        (1e9, 1.0),
    ),
}
"""Bytes, and the share of flows that are not longer."""


def longest_frame_bytes(sizes: Sizes) -> int:
    return sizes.most_bytes if sizes.kind == "exponential" else sizes.frame_bytes


def least_frame_bytes(sizes: Sizes) -> int:
    """Return the length of the shortest frame."""
    return sizes.frame_bytes if sizes.kind == "fixed" else min(sizes.least_bytes, sizes.frame_bytes)


def has_flows(sizes: Sizes) -> bool:
    """Return whether what arrives are flows of many frames."""
    return sizes.kind in FLOW_SIZES


def mean_frame_bytes(sizes: Sizes) -> float:
    """Return the mean size of frames, of flows that of all frames but the last."""
    return float(sizes.frame_bytes) if has_flows(sizes) else mean_bytes(sizes)


def mean_bytes(sizes: Sizes) -> float:
    """Return the mean size of a frame or a flow, as `draw` draws them (before rounding to whole bytes)."""
    if sizes.kind == "fixed":
        return float(sizes.frame_bytes)
    if sizes.kind == "uniform":
        return (sizes.least_bytes + sizes.frame_bytes) / 2
    if sizes.kind == "exponential":
        # The integral of P(X > x) from 0 to the greatest size, where P is 1 below the least.
        least, most, mean = sizes.least_bytes, sizes.most_bytes, sizes.frame_bytes
        return float(least + mean * (np.exp(-least / mean) - np.exp(-most / mean)))
    return _mean_flow(FLOW_SIZES[sizes.kind], sizes.most_flow_bytes)


def _mean_flow(points: _Points, most_bytes: int | None) -> float:
    total = 0.0
    for (low, low_share), (high, high_share) in pairwise(points):
        if most_bytes is None or high <= most_bytes:
            part = (low + high) / 2
        elif low >= most_bytes:
            part = float(most_bytes)
        else:
            below = (most_bytes - low) / (high - low)
            part = below * (low + most_bytes) / 2 + (1 - below) * most_bytes
        total += (high_share - low_share) * part
    return total


def draw(sizes: Sizes, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Bytes of so many frames or flows, shape (count,)."""
    if sizes.kind == "fixed":
        return np.full(count, sizes.frame_bytes, np.int64)
    if sizes.kind == "uniform":
        return random.integers(sizes.least_bytes, sizes.frame_bytes, count, endpoint=True)
    if sizes.kind == "exponential":
        drawn = random.exponential(sizes.frame_bytes, count)
        return np.rint(np.clip(drawn, sizes.least_bytes, sizes.most_bytes)).astype(np.int64)
    bytes_, shares = np.array(FLOW_SIZES[sizes.kind]).T
    found = np.interp(random.random(count), shares, bytes_)
    if sizes.most_flow_bytes is not None:
        found = np.minimum(found, sizes.most_flow_bytes)
    whole: NDArray[np.int64] = np.maximum(1, np.rint(found)).astype(np.int64)
    return whole
