"""Figure 2: throughput and round time against the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path

from experiments.plotting.series import draw_companion, draw_series, explain_marks
from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.aggregation.figures.modes import NUMBERS, in_link_rates, mode
from experiments.systems.aggregation.metrics import SHARE
from experiments.tables.metric import Metric


def ring_bound(workers: int) -> float:
    """What ring all-reduce of two or more workers can reach, in units of the link rate: each sends 2(n-1)/n gradients
    over its own link (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69, 2009)."""
    return workers / (2 * (workers - 1))


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    throughput, bounds, packets = (
        results.derived_series(itemgetter("workload.workers"), partial(in_link_rates, name=name), mode)
        for name in ("throughput_bps", "bound_bps", "packet_bound_bps")
    )
    times = results.derived_series(itemgetter("workload.workers"), lambda row: 1e3 * row["round_time_s"], mode)
    with figure(columns=2) as (made, axes):
        for panel, series in zip(axes, (throughput, times), strict=True):
            for name, points in series.items():
                possible = SHARE if panel is axes[0] else (0.0, None)
                draw_series(panel, points, label=name, number=NUMBERS[name], possible=possible)
            panel.set_xlabel("workers")
            panel.xaxis.get_major_locator().set_params(integer=True)
            panel.set_ylim(bottom=0)
        for companions, dashes in ((bounds, "--"), (packets, "-.")):
            for name, points in companions.items():
                draw_companion(axes[0], points, label=None, number=NUMBERS[name], dashes=dashes)
        counts = sorted({point.x for point in throughput.get("ring", []) if point.x > 1})
        if counts:
            axes[0].plot(counts, [ring_bound(n) for n in counts], ":", color=COLOURS[NUMBERS["ring"]], linewidth=1.0)
        axes[0].plot([], [], "--", color="black", linewidth=1.0, label="bound of the linear program")
        axes[0].plot([], [], "-.", color="black", linewidth=1.0, label="bound for packets with their labels")
        axes[0].plot([], [], ":", color="black", linewidth=1.0, label="n / 2(n - 1): ring")
        axes[0].set_ylim(0, 1.08)
        axes[0].set_ylabel("throughput / link rate")
        axes[1].set_ylabel("median round time (ms)")
        explain_marks(axes[0], [point.verdict for points in throughput.values() for point in points])
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=3)
        return save(made, path, results.heading)
