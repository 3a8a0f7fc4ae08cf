"""Figure 6: what hosts receive over time, while something fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.style import COLOURS, figure, save
from experiments.study.model import FigureSection
from experiments.study.results import StudyResults
from experiments.system import Metric

FAILURE = "failure.kind"


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.figures.KINDS; of points with samples (`samples.interval_us`)."""
    bytes_at: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in results.table("link_samples"):
        if row["to_node"].startswith("h"):
            bytes_at[row[FAILURE]][row["time_us"] / 1000].append(row["bytes"])
    repetitions = 1 + max(point.repetition for point in results.points)
    at_ms = next(iter(results.configurations().values()))["failure"]["at_ms"]
    with figure(width_in=6.0) as (made, [axes]):
        for number, (name, samples) in enumerate(bytes_at.items()):
            times = sorted(samples)
            widths = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
            rates = [
                8e-3 * sum(samples[time]) / repetitions / width for time, width in zip(times, widths, strict=True)
            ]
            axes.plot(times, rates, color=COLOURS[number % len(COLOURS)], label=name)
        axes.axvline(at_ms, color="grey", linewidth=0.8, linestyle=":")
        axes.set_xlabel("time (ms)")
        axes.set_ylabel("received by all hosts (Mbit/s)")
        axes.set_ylim(bottom=0)
        axes.legend()
        return save(made, path, results.heading)
