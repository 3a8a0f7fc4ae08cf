"""Figure 6: accuracy against the epoch, with local and with global shuffling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.series import cut
from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.intervals import confidence_interval
from experiments.tables.metric import Metric

DASHES = {"global": "-", "local": "--"}


def courses(results: StudyResults) -> dict[tuple[str, str], dict[int, list[float]]]:
    """Accuracies by (first samples, shuffling) and epoch, of all repetitions."""
    first = {point.row["digest"]: point.row["samples.first"] for point in results.points}
    found: defaultdict[tuple[str, str], defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in results.table("epochs"):
        if row["digest"] in first:
            found[first[row["digest"]], row["shuffling"]][row["epoch"]].append(float(row["accuracy"]))
    return {key: dict(sorted(course.items())) for key, course in found.items()}


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS. A line for the mean, its interval around it."""
    found = courses(results)
    colours = {first: COLOURS[place] for place, first in enumerate(dict.fromkeys(first for first, _ in found))}
    with figure(width_in=5.2, height_in=3.6) as (made, [axes]):
        for (first, shuffling), course in found.items():
            epochs = list(course)
            intervals = [confidence_interval([100 * value for value in values]) for values in course.values()]
            axes.plot(
                epochs,
                [interval.estimate for interval in intervals],
                DASHES[shuffling],
                color=colours[first],
                linewidth=1.4,
                label=f"{shuffling} shuffling, first samples {first}",
            )
            low, high = zip(*(cut(interval, (0, 100)) for interval in intervals), strict=True)
            axes.fill_between(epochs, low, high, color=colours[first], alpha=0.12, linewidth=0)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel("test accuracy (%)")
        axes.set_ylim(0, 100)
        axes.legend(fontsize="small")
        return save(made, path, results.heading)
