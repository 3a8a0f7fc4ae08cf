"""Figure 4: accuracy against time, for peers that wait for a slow one and for peers that do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric

DASHES = {"synchronous": "-", "asynchronous": "--"}

Course = list[tuple[float, float]]


def courses(results: StudyResults) -> dict[tuple[int, str], Course]:
    """(time in s, accuracy) of every version of peer 0, means over repetitions, by slowness and mode."""
    own = {point.row["digest"] for point in results.points}
    found: defaultdict[tuple[int, str], defaultdict[int, Course]] = defaultdict(lambda: defaultdict(list))
    for row in results.table("peers"):
        if row["digest"] in own and row["accuracy"] is not None:
            series = row["workload.slowness"], row["workload.mode"]
            found[series][row["version"]].append((row["at_s"], row["accuracy"]))
    return {
        series: [(fmean(at for at, _ in each), fmean(value for _, value in each)) for _, each in sorted(of.items())]
        for series, of in sorted(found.items())
    }


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    found = courses(results)
    colours = {slowness: COLOURS[i % len(COLOURS)] for i, slowness in enumerate(sorted({key[0] for key in found}))}
    with figure(width_in=5.6, height_in=3.8) as (made, [axes]):
        for (slowness, mode), course in found.items():
            axes.plot(
                [at for at, _ in course],
                [100 * accuracy for _, accuracy in course],
                DASHES[mode],
                color=colours[slowness],
                label=f"{mode}, slowest computes {slowness} x as long",
            )
        axes.set_xlabel("time (s)")
        axes.set_xlim(left=0)
        axes.set_ylabel("test accuracy of a peer that is not slow (%)")
        axes.set_ylim(0, 100)
        axes.legend(fontsize="small")
        return save(made, path, results.heading)
