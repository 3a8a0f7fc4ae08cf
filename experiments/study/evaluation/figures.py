"""The figures that a study's file asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gradbed.experiments.plotting.style import NothingToDraw, figure, save
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.evaluation import courses as _courses  # noqa: F401  # kinds course,
from gradbed.experiments.study.evaluation import distributions as _distributions  # noqa: F401  # distribution,
from gradbed.experiments.study.evaluation import lines as _lines  # noqa: F401  # lines and bars
from gradbed.experiments.study.evaluation import link_loads as _links  # noqa: F401  # links
from gradbed.experiments.study.evaluation.kinds import KINDS, Kind, Sheet
from gradbed.experiments.tables.metric import Metric


def draw_figures(
    results: StudyResults,
    figures: Mapping[str, FigureSection],
    metrics: Mapping[str, Metric],
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Draw every figure that has points, into the run's folder; the files. say: takes a line for each other one."""
    written: list[Path] = []
    for name, section in figures.items():
        try:
            if section.y and not any(results.series(section.x, section.y, section.series).values()):
                raise NothingToDraw
            written += _draw(results, section, metrics, results.folder / name)
        except NothingToDraw as nothing:
            why = str(nothing) or "there is no point to draw, as none that it shows has ended with a result"
            say(f"no figure {name}: {why}")
    return written


def kinds() -> Mapping[str, Kind]:
    """All there are, by name; a system's once that is loaded."""
    return KINDS


def _draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    kind = KINDS[section.kind]
    columns, rows = (
        count if isinstance(count, int) else count(results, section) for count in (kind.columns, kind.rows)
    )
    size = section.width_in or kind.width_in, section.height_in or kind.height_in
    with figure(*size, columns, rows) as (made, axes):
        heading = kind.draw(Sheet(axes, results, section, metrics))
        return save(made, path, results.heading if heading is None else heading)
