"""Figures of the interconnect that need more than lines, as figure kinds that studies name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from gradbed.experiments.plotting.style import COLOURS, MARKERS
from gradbed.experiments.study.evaluation.figures import draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.interconnect.sizes import NetworkSize, sizes
from gradbed.experiments.tables.intervals import confidence_interval

# ---- Sizes ----
#
# Figure 4: what a network of a given size takes, beside fat-tree, dragonfly and torus. From graphs; no trial is
# needed but one, which carries the figure.


LARGEST, LARGEST_QUICK = 8, 4


PANELS: dict[str, Callable[[NetworkSize], float]] = {
    "diameter (links)": lambda size: size.diameter,
    "mean distance (links)": lambda size: size.mean_distance,
    "switches per host": lambda size: size.switches / size.hosts,
    "links per host": lambda size: size.links / size.hosts,
    "switch ports per host": lambda size: (size.electrical_ports + size.optical_ports) / size.hosts,
}


@figure_kind("interconnect-sizes", columns=len(PANELS), width_in=3.2, height_in=3.4)
def draw_sizes(sheet: Sheet) -> str:
    """Draw figure 4."""
    resolved = sheet.results.resolved
    by_family: dict[str, list[NetworkSize]] = defaultdict(list)
    for n in range(2, (LARGEST_QUICK if resolved["quick"] else LARGEST) + 1):
        for size in sizes(n):
            by_family[size.family].append(size)
    for panel, (label, value) in zip(sheet.axes, PANELS.items(), strict=True):
        for number, (family, found) in enumerate(by_family.items()):
            hosts, values = [size.hosts for size in found], [value(size) for size in found]
            panel.plot(hosts, values, color=COLOURS[number], marker=MARKERS[number], label=family)
        panel.set(xscale="log", xlabel="hosts", ylabel=label, ylim=(0, None))
    own = by_family["optical-electrical"]
    electrical = [size.electrical_ports / size.hosts for size in own]
    last = sheet.axes[-1]
    last.plot([size.hosts for size in own], electrical, ":", color=COLOURS[0], label="electrical ports alone")
    legend_below(last, 5)
    return str(resolved["title"])


# ---- Figure 6: what hosts receive over time, while something fails ----


FAILURE = "failure.kind"


@figure_kind("interconnect-failures", width_in=6.0)
def draw_failures(sheet: Sheet) -> None:
    """Draw figure 6, of trials with samples (`samples.interval_us`)."""
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
