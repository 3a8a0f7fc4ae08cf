"""The samples of a long run: read, judged, printed, drawn."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from gradbed.experiments.bench.load.flatness import BYTES, WARM_UP, Course, courses
from gradbed.experiments.plotting.style import COLOURS, figure, save
from gradbed.experiments.tables.console import make_console
from gradbed.experiments.tables.rows import Columns, rows_table

Samples = Sequence[dict[str, float]]
"""By column: time_s, jobs, and what was held."""

MEMORY = "_resident_bytes"
DESCRIPTORS = "_descriptors"
ENTRIES, SLOTS = "entries", "held_slots"


def read_samples(path: Path) -> Samples:
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
    """Memory above, descriptors below, by time; `path` is without suffix."""
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
