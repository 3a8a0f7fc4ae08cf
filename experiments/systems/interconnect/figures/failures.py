"""Figure 6: what hosts receive over time, while something fails."""

from __future__ import annotations

from collections import defaultdict

from gradbed.experiments.study.evaluation.courses import draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.tables.intervals import confidence_interval

FAILURE = "failure.kind"


@figure_kind("interconnect-failures", width_in=6.0)
def draw(sheet: Sheet) -> None:
    """Of points with samples (`samples.interval_us`)."""
    [axes], results = sheet.axes, sheet.results
    bytes_at: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in results.table("link_samples"):
        if row["to_node"].startswith("h"):
            bytes_at[row[FAILURE]][row["time_us"] / 1000][row["repetition"]] += row["bytes"]
    for number, (name, samples) in enumerate(bytes_at.items()):
        times = sorted(samples)
        widths = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
        found = [
            confidence_interval([8e-3 * value / width for value in samples[time].values()])
            for time, width in zip(times, widths, strict=True)
        ]
        draw_line(axes, times, found, label=name, number=number)
    at_ms = next(iter(results.configurations().values()))["failure"]["at_ms"]
    axes.axvline(at_ms, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="time (ms)", ylabel="received by all hosts (Mbit/s)", ylim=(0, None))
    axes.legend()
