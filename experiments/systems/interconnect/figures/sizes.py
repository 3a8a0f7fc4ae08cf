"""Figure 4: what a network of a given size takes, beside fat-tree, dragonfly and torus. From graphs; no point is
needed but one, which carries the figure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from gradbed.experiments.plotting.style import COLOURS, MARKERS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.interconnect.sizes import Size, sizes

LARGEST, LARGEST_QUICK = 8, 4


PANELS: dict[str, Callable[[Size], float]] = {
    "diameter (links)": lambda size: size.diameter,
    "mean distance (links)": lambda size: size.mean_distance,
    "switches per host": lambda size: size.switches / size.hosts,
    "links per host": lambda size: size.links / size.hosts,
    "switch ports per host": lambda size: (size.electrical_ports + size.optical_ports) / size.hosts,
}


@figure_kind("interconnect-sizes", columns=len(PANELS), width_in=3.2, height_in=3.4)
def draw(sheet: Sheet) -> str:
    resolved = sheet.results.resolved
    by_family: dict[str, list[Size]] = defaultdict(list)
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
