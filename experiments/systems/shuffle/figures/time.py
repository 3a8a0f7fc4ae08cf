"""Figure 2: the time of a shuffle against storage, and as a part of what unicast takes."""

from __future__ import annotations

from typing import Any

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind

BASELINES = {"unicast-random": "-", "unicast-nearest": ":"}
"""Which unicast is compared with decides the picture, so both are shown."""


def mean_times(results: StudyResults) -> dict[str, dict[Any, float]]:
    """In seconds, by scheduler and storage."""
    series = results.series("samples.storage", "shuffle_time_s", "shuffle.scheduler")
    return {
        name: {point.x: sum(point.values) / len(point.values) for point in points if point.values}
        for name, points in series.items()
    }


@figure_kind("shuffle-time", columns=2, width_in=4.4, height_in=3.6)
def draw(sheet: Sheet) -> None:
    [left, right], results = sheet.axes, sheet.results
    in_ms = results.derived_series(
        lambda row: row["samples.storage"],
        lambda row: 1e3 * row["shuffle_time_s"],
        lambda row: row["shuffle.scheduler"],
    )
    times = mean_times(results)
    draw_all(left, in_ms)
    for baseline, dashes in BASELINES.items():
        for number, (name, of_storage) in enumerate(times.items()):
            shared = sorted(of_storage.keys() & times.get(baseline, {}).keys())
            if name in BASELINES or not shared:
                continue
            share = [100 * of_storage[x] / times[baseline][x] for x in shared]
            right.plot(shared, share, dashes, color=COLOURS[number], linewidth=1.2)
        right.plot([], [], dashes, color="black", linewidth=1.2, label=f"of {baseline}")
    for each, words in ((left, "time of a shuffle (ms)"), (right, "time of a shuffle (%)")):
        each.set(xlabel="samples that a worker stores / all samples", xlim=(0, None), ylabel=words)
        each.set_yscale("log", subs=(2, 5))  # the master is far above all others
        each.yaxis.set_major_formatter("{x:g}")
        each.yaxis.set_minor_formatter("{x:g}")
    right.axhline(100, color="grey", linewidth=0.8)
    explain_marks(left, verdicts(in_ms))
    for each in (left, right):
        each.legend(fontsize="small")
