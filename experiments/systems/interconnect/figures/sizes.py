"""Figure 4: what a network of a given size takes, beside fat-tree, dragonfly and torus. From graphs; no point is
needed but one, which carries the figure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments.plotting.style import COLOURS, MARKERS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.interconnect.sizes import Size, sizes
from experiments.tables.metric import Metric

LARGEST, LARGEST_QUICK = 8, 4


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    by_family: dict[str, list[Size]] = defaultdict(list)
    for n in range(2, (LARGEST_QUICK if results.resolved["quick"] else LARGEST) + 1):
        for size in sizes(n):
            by_family[size.family].append(size)
    panels: tuple[tuple[str, Callable[[Size], float]], ...] = (
        ("diameter (links)", lambda size: size.diameter),
        ("mean distance (links)", lambda size: size.mean_distance),
        ("switches per host", lambda size: size.switches / size.hosts),
        ("links per host", lambda size: size.links / size.hosts),
        ("switch ports per host", lambda size: (size.electrical_ports + size.optical_ports) / size.hosts),
    )
    with figure(width_in=3.2, height_in=3.4, columns=len(panels)) as (made, axes):
        for panel, (label, value) in zip(axes, panels, strict=True):
            for number, (family, found) in enumerate(by_family.items()):
                panel.plot(
                    [size.hosts for size in found],
                    [value(size) for size in found],
                    color=COLOURS[number],
                    marker=MARKERS[number],
                    label=family,
                )
            panel.set_xscale("log")
            panel.set_xlabel("hosts")
            panel.set_ylabel(label)
            panel.set_ylim(bottom=0)
        own = by_family["optical-electrical"]
        electrical = [size.electrical_ports / size.hosts for size in own]
        axes[-1].plot([size.hosts for size in own], electrical, ":", color=COLOURS[0], label="electrical ports alone")
        handles, labels = axes[-1].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=5)
        return save(made, path, str(results.resolved["title"]))
