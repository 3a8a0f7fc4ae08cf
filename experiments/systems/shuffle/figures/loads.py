"""Figure 3: packets on the links of each class: the most over the mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.study.model import FigureSection
from experiments.study.results import StudyResults
from experiments.system import Metric, Row
from experiments.systems.shuffle.loads import max_over_mean


def spread(results: StudyResults) -> dict[tuple[str, str], float]:
    """The most over the mean of the links of a class, by the point's digest and the class."""
    packets: defaultdict[tuple[str, str], dict[tuple[str, str, str], int]] = defaultdict(dict)
    for row in results.table("loads"):
        packets[row["digest"], row["class"]][row["phase"], row["from"], row["to"]] = row["packets"]
    found = {key: max_over_mean(list(loads.values())) for key, loads in packets.items()}
    return {key: value for key, value in found.items() if value is not None}


def label(row: Row) -> str:
    """What decided: the scheduler, and how many trees it could choose from."""
    trees = row.get("shuffle.trees", 1)
    return f"{row['shuffle.scheduler']}, {trees} trees" if trees > 1 else str(row["shuffle.scheduler"])


def _of_class(found: Mapping[tuple[str, str], float], kind: str, row: Row) -> float | None:
    return found.get((row["digest"], kind))


def _name(kind: str, row: Row) -> str:
    return kind


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.figures.KINDS."""
    found = spread(results)
    classes = list(dict.fromkeys(kind for _, kind in found))
    labels = list(dict.fromkeys(label(point.row) for point in results.points))
    places = {name: float(place) for place, name in enumerate(labels)}
    verdicts = []
    with figure(width_in=6.0, height_in=3.8) as (made, [axes]):
        for number, kind in enumerate(classes):
            series = results.derived_series(label, partial(_of_class, found, kind), partial(_name, kind))
            for name, points in series.items():
                draw_series(axes, points, label=name, number=number, x_of=places)
                verdicts += [point.verdict for point in points]
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xticks(list(places.values()), [name.replace(", ", "\n") for name in places], rotation=20)
        axes.set_ylabel("packets on a link: most / mean")
        axes.set_ylim(bottom=0)
        explain_marks(axes, verdicts)
        axes.legend(fontsize="small")
        return save(made, path, results.heading)
