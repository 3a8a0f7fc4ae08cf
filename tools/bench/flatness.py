"""Judging the samples of a long run: what it holds has to stay the same.

Memory is judged by a line of least squares through the samples, all else exactly.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradbed.experiments.plotting.style import COLOURS, figure, save
from gradbed.experiments.tables.console import Columns, make_console, rows_table

# ---- Does it stay the same? ----


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
    """What became of one quantity after the warm-up."""

    name: str
    least: float
    """Minimum."""
    most: float
    """Maximum."""
    growth: float
    """Of the line of least squares from the first to the last sample, in the quantity's unit."""

    @property
    def is_flat(self) -> bool:
        """Whether the quantity has not grown."""
        if self.name.endswith(BYTES):
            return self.growth <= LARGEST_GROWTH_BYTES
        return self.least == self.most


def courses(samples: Sequence[Mapping[str, float]], against: str) -> list[Course]:
    """Return the course of every quantity but `against`, with which a leak would grow (seconds, jobs).

    A quantity that a sample lacks was zero. ValueError for too few samples.
    """
    kept = samples[int(WARM_UP * len(samples)) :]
    if len(kept) < FEWEST:
        raise ValueError(f"{len(kept)} samples after the warm-up; {FEWEST} are needed")
    at = [float(sample[against]) for sample in kept]
    names = dict.fromkeys(name for sample in samples for name in sample if name != against)
    return [_course(name, at, [float(sample.get(name, 0)) for sample in kept]) for name in names]


def _course(name: str, at: Sequence[float], values: Sequence[float]) -> Course:
    return Course(name, min(values), max(values), slope(at, values) * (at[-1] - at[0]))


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the line of least squares; 0 where all samples were taken at one place."""
    mean_at, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((x - mean_at) ** 2 for x in at)
    return sum((x - mean_at) * (y - mean) for x, y in zip(at, values, strict=True)) / spread if spread else 0.0


# ---- Samples ----


Samples = Sequence[dict[str, float]]
"""By column: time_s, jobs, and what was held."""

MEMORY = "_resident_bytes"
DESCRIPTORS = "_descriptors"
ENTRIES, SLOTS = "entries", "held_slots"


def read_samples(path: Path) -> Samples:
    """Read a CSV file of samples."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def judge(samples: Samples) -> list[Course]:
    """Print a table of all courses, and return those that are not flat. ValueError for too few samples."""
    found = courses([{name: row[name] for name in row if name != "jobs"} for row in samples], "time_s")
    columns: Columns = (
        ("what", lambda course: course.name),
        ("least", lambda course: _number(course.name, course.least)),
        ("most", lambda course: _number(course.name, course.most)),
        ("growth", lambda course: _number(course.name, course.growth)),
        ("", lambda course: "flat" if course.is_flat else "NOT FLAT"),
    )
    hours = (samples[-1]["time_s"] - samples[0]["time_s"]) / 3600
    title = f"{samples[-1]['jobs']:.0f} jobs in {hours:.2f} h; held after the first {100 * WARM_UP:.0f} % of it"
    make_console().print(rows_table(title, columns, found, words=("what", "")))
    return [course for course in found if not course.is_flat]


def _number(name: str, value: float) -> str:
    return f"{value / 2**20:.2f} MiB" if name.endswith(BYTES) else f"{value:.0f}"


def draw(samples: Samples, path: Path) -> list[Path]:
    """Draw memory above and descriptors below, by time; `path` is without suffix."""
    minutes = [row["time_s"] / 60 for row in samples]
    with figure(6.0, 2.6, rows=2) as (made, [memory, counts]):
        roles = [name.removesuffix(MEMORY) for name in samples[0] if name.endswith(MEMORY)]
        for role, colour in zip(roles, COLOURS, strict=False):
            memory.plot(minutes, [row[role + MEMORY] / 2**20 for row in samples], color=colour, label=role)
            counts.plot(
                minutes, [row[role + DESCRIPTORS] for row in samples], color=colour, label=f"{role}: descriptors"
            )
        counts.plot(minutes, [row[ENTRIES] for row in samples], "k--", label="entries in switches")
        counts.plot(minutes, [row[SLOTS] for row in samples], "k:", label="slots held")
        warm_up_min = minutes[int(WARM_UP * len(minutes))]
        for axes in (memory, counts):
            axes.axvline(warm_up_min, color="grey", linewidth=0.8)
            axes.set_ylim(bottom=0)
            axes.legend(ncols=3)
        memory.set_ylabel("resident memory (MiB)")
        counts.set_ylabel("count")
        counts.set_xlabel("time (min); what is right of the line is judged")
        return save(made, path)
