"""Does what a long run holds stay the same? Memory by a line through the samples; all else has to be equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WARM_UP = 0.25
"""Of the samples: caches fill, and the allocator comes to its size."""

FEWEST = 4
"""Samples after the warm-up of which anything is said."""

BYTES = "_bytes"
"""How the names of quantities end that may vary, but not grow."""

LARGEST_GROWTH_BYTES = 1 << 20
"""From the warm-up's end to the last sample, on the line of least squares."""


@dataclass(frozen=True)
class Course:
    """What became of one quantity after the warm-up.

    growth: of the line of least squares from the first to the last of these samples, in the quantity's unit.
    """

    name: str
    least: float
    most: float
    growth: float

    @property
    def is_flat(self) -> bool:
        if self.name.endswith(BYTES):
            return self.growth <= LARGEST_GROWTH_BYTES
        return self.least == self.most


def courses(samples: Sequence[Mapping[str, float]], against: str) -> list[Course]:
    """Of every quantity but `against`, which is what a leak would grow with (seconds, jobs). A quantity that a sample
    lacks was zero. ValueError for too few samples."""
    kept = samples[int(WARM_UP * len(samples)) :]
    if len(kept) < FEWEST:
        raise ValueError(f"{len(kept)} samples after the warm-up; {FEWEST} are needed")
    at = [float(sample[against]) for sample in kept]
    names = dict.fromkeys(name for sample in samples for name in sample if name != against)
    return [_course(name, at, [float(sample.get(name, 0)) for sample in kept]) for name in names]


def _course(name: str, at: Sequence[float], values: Sequence[float]) -> Course:
    return Course(name, min(values), max(values), slope(at, values) * (at[-1] - at[0]))


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Of the line of least squares; 0 where all samples were taken at one place."""
    mean_at, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((x - mean_at) ** 2 for x in at)
    return sum((x - mean_at) * (y - mean) for x, y in zip(at, values, strict=True)) / spread if spread else 0.0
