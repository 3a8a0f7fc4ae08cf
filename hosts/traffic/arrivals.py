"""Times at which packets are sent, or flows begin: processes with a given mean distance, drawn in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.traffic.description import Arrivals

BLOCK = 256

Times = NDArray[np.float64]


def arrival_times(arrivals: Arrivals, distance_ns: float, random: np.random.Generator) -> Iterator[Times]:
    """Blocks of rising times in nanoseconds from 0 on, without end. distance_ns: between two arrivals, the mean."""
    if arrivals.kind == "constant":
        return _constant(distance_ns, random.random() * distance_ns)
    if arrivals.kind == "poisson":
        return _poisson(distance_ns, random)
    share = arrivals.on_us / (arrivals.on_us + arrivals.off_us)
    return _in_bursts(_constant(distance_ns * share, 0.0), _bursts(arrivals, random))


def _constant(distance_ns: float, first_ns: float) -> Iterator[Times]:
    begin = 0
    while True:
        yield first_ns + np.arange(begin, begin + BLOCK, dtype=np.float64) * distance_ns
        begin += BLOCK


def _poisson(distance_ns: float, random: np.random.Generator) -> Iterator[Times]:
    last_ns = 0.0
    while True:
        times_ns = last_ns + np.cumsum(random.exponential(distance_ns, BLOCK))
        last_ns = float(times_ns[-1])
        yield times_ns


def _bursts(arrivals: Arrivals, random: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Lengths of a burst and of the pause after it, in nanoseconds."""
    means_ns = (1000 * arrivals.on_us, 1000 * arrivals.off_us)
    while True:
        if arrivals.bursts == "constant":
            yield means_ns
        else:
            on_ns, off_ns = random.exponential(means_ns)
            yield float(on_ns), float(off_ns)


def _in_bursts(times: Iterator[Times], bursts: Iterator[tuple[float, float]]) -> Iterator[Times]:
    """Times of a clock that stands still in the pauses, as times of one that goes on."""
    end_ns, paused_ns, next_pause_ns = 0.0, 0.0, 0.0
    for block in times:
        shifted = np.empty_like(block)
        begin = 0
        while begin < len(block):
            if block[begin] >= end_ns:
                paused_ns += next_pause_ns
                on_ns, next_pause_ns = next(bursts)
                end_ns += on_ns
                continue
            end = int(np.searchsorted(block, end_ns, "left"))
            shifted[begin:end] = block[begin:end] + paused_ns
            begin = end
        yield shifted
