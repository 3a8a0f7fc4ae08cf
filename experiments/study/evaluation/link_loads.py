"""Figures of kind links: what every link carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gradbed.experiments.configuration.sections import link_classes
from gradbed.experiments.plotting.series import series_style
from gradbed.experiments.plotting.style import NothingToDraw
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation.kinds import HEADROOM, Sheet, figure_kind
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.words import short_names
from gradbed.topo.graph import Topology

TABLE = "links"


def loads(rows: Sequence[Mapping[str, object]], topology: Topology) -> dict[str, list[int]]:
    """Bytes of both directions of every link, the most first, by its class: "host", or tiers such as "leaf-spine".

    rows: of the table links of a point, whose phases are summed; what carried nothing is not in them."""
    carried: dict[tuple[object, object], int] = defaultdict(int)
    for row in rows:
        carried[row["from"], row["to"]] += int(str(row["bytes"]))
    found: dict[str, list[int]] = {}
    for link in topology.links:
        ends = link.a.node, link.b.node
        found.setdefault(min(link_classes(topology, link)), []).extend(carried[way] for way in (ends, ends[::-1]))
    return {name: sorted(each, reverse=True) for name, each in found.items()}


def _points(results: StudyResults, section: FigureSection) -> list[DonePoint]:
    """One for each value of the series, those that carried anything."""
    found = {
        repr(point.row[section.series]) if section.series else "": point
        for point in reversed(results.points)
        if point.table(TABLE)
    }
    return list(reversed(found.values()))


@figure_kind("links", columns=lambda results, section: len(_points(results, section)))
def draw_links(sheet: Sheet) -> None:
    """A panel for each value of the series: bytes of every direction of a link, the busiest first, by class."""
    points = _points(sheet.results, sheet.section)
    if not points:
        raise NothingToDraw
    system = find_system(str(sheet.results.resolved["system"]))
    configurations = sheet.results.configurations()
    series = sheet.section.series
    names = short_names([point.row[series] if series else "" for point in points])
    for axes, point, name in zip(sheet.axes, points, names, strict=True):
        configuration = system.configuration.model_validate(configurations[point.stored.digest])
        by_class = loads(point.table(TABLE), configuration.topology.build(Scale()))
        for number, (link_class, values) in enumerate(by_class.items()):
            colour, marker = series_style(number)
            places = range(1, len(values) + 1)
            axes.plot(
                places, [value / 1e3 for value in values], marker + "-", color=colour, markersize=3, label=link_class
            )
        axes.set_title(name)
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], HEADROOM * axes.dataLim.y1))
        axes.set_xlabel("directions of links, the busiest first")
        axes.set_ylabel("carried (kB)")
        axes.xaxis.get_major_locator().set_params(integer=True)
    sheet.axes[0].legend()
