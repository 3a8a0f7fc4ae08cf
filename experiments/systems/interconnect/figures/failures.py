"""Figure 6: what hosts receive over time, while something fails."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.intervals import confidence_interval
from experiments.tables.metric import Metric

FAILURE = "failure.kind"


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS; of points with samples (`samples.interval_us`)."""
    bytes_at: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in results.table("link_samples"):
        if row["to_node"].startswith("h"):
            bytes_at[row[FAILURE]][row["time_us"] / 1000][row["repetition"]] += row["bytes"]
    at_ms = next(iter(results.configurations().values()))["failure"]["at_ms"]
    with figure(width_in=6.0) as (made, [axes]):
        for number, (name, samples) in enumerate(bytes_at.items()):
            times, colour = sorted(samples), COLOURS[number % len(COLOURS)]
            widths = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
            found = [
                confidence_interval([8e-3 * value / width for value in samples[time].values()])
                for time, width in zip(times, widths, strict=True)
            ]
            axes.plot(times, [each.estimate for each in found], color=colour, label=name)
            if not any(math.isnan(each.low) for each in found):
                low, high = [each.low for each in found], [each.high for each in found]
                axes.fill_between(times, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.axvline(at_ms, color="grey", linewidth=0.8, linestyle=":")
        axes.set_xlabel("time (ms)")
        axes.set_ylabel("received by all hosts (Mbit/s)")
        axes.set_ylim(bottom=0)
        axes.legend()
        return save(made, path, results.heading)
