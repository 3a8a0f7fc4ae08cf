"""Do the points of figures keep to the bounds that are drawn beside them?"""

from __future__ import annotations

from collections.abc import Mapping

from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation.kinds import panels_of

ROUNDING = 1e-6
"""Of sums and linear programs; a share."""


def crossings(results: StudyResults, figures: Mapping[str, FigureSection]) -> dict[str, list[str]]:
    """By figure, a line for each of its points that lies above its bound; figures without such points are left out.

    Points that failed or are invalid claim nothing.
    """
    found = {
        name: list(dict.fromkeys(line for panel in panels_of(section) for line in _above(results, panel)))
        for name, section in figures.items()
    }
    return {name: lines for name, lines in found.items() if lines}


def _above(results: StudyResults, section: FigureSection) -> list[str]:
    if section.bound is None:
        return []
    lines: dict[str, None] = {}
    for point in (*results.points, *results.other_clock):
        y, bound = point.row.get(section.y), point.row.get(section.bound)
        if point.stored.is_good and y is not None and bound is not None and y > bound * (1 + ROUNDING):
            lines[f"{point.place_text}{section.y} is {y:g}, above its bound ({section.bound}), {bound:g}"] = None
    return list(lines)
