"""Figure 3: round time, and packets sent again, against loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric
from formats.lanes import frame_bytes

X = "topology.link.loss"
WORDS = {"aimd": "window closes for losses and marks", "ecn": "window closes for marks alone", "none": "fixed window"}
LINKS = 2
"""From a worker to the server: its own, and the server's."""


@dataclass(frozen=True)
class LossModel:
    """Workers and server on one switch that sums; times in nominal milliseconds (docs/figures.md derives all)."""

    workers: int
    fragments: int
    window: int
    packet_ms: float
    delay_ms: float
    min_timeout_ms: float

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> LossModel:
        """Of a point on a star."""
        workload, link = configuration["workload"], configuration["topology"]["link"]
        return cls(
            workers=workload["workers"],
            fragments=math.ceil(workload["values"] / workload["lanes"]),
            window=workload["window_fragments"],
            packet_ms=8 * frame_bytes(workload["lanes"]) / link["rate_mbps"] / 1e3,
            delay_ms=link["delay_us"] / 1e3,
            min_timeout_ms=workload["min_timeout_us"] / 1e3,
        )

    @property
    def round_trip_ms(self) -> float:
        """Without queues."""
        return 2 * LINKS * (self.packet_ms + self.delay_ms)

    def timeouts(self, loss: float) -> float:
        """Extra timeouts for each use of a slot: it takes n packets up, one sum, one answer and n copies of it, and
        each try fails if any is lost. About 2np."""
        fails = 1 - (1 - loss) ** (2 * self.workers + 2)
        return fails / (1 - fails)

    def round_time_ms(self, lossless_ms: float, loss: float, *, repair_ms: float) -> float:
        """If every slot is used fragments / window times in turn, and waits `repair_ms` for each failure."""
        return lossless_ms + self.fragments / self.window * self.timeouts(loss) * repair_ms

    def repeats(self, loss: float) -> float:
        """Packets that a worker sends again, for each fragment: it does so if any worker's packet, the sum or the
        answer got lost, all of which leave it without an answer, or its own copy of the answer."""
        return (self.workers + 3) * loss


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """A kind of evaluation/figures.py. Left: the mean of rounds, since rare timers are what is asked for."""
    policy = itemgetter("workload.congestion_control")
    model = LossModel.of(next(iter(results.configurations().values())))
    each = model.fragments * model.workers
    times = results.derived_series(itemgetter(X), lambda row: 1e3 * row["mean_round_time_s"], policy)
    repeats = results.derived_series(itemgetter(X), lambda row: row["resends"] / each if row[X] > 0 else None, policy)
    losses = sorted({point.x for points in repeats.values() for point in points})
    lossless = [value for points in times.values() for point in points if point.x == 0 for value in point.values]
    bounds = [row["bound_bps_normalised"] for row in (point.row for point in results.points)]
    with figure(width_in=4.9, height_in=3.9, columns=2) as (made, axes):
        for panel, series in zip(axes, (times, repeats), strict=True):
            for number, (name, points) in enumerate(series.items()):
                draw_series(panel, [point for point in points if point.x > 0], label=WORDS[name], number=number)
            panel.set_xscale("log")
            panel.set_xlabel("loss of every link, in either direction (p)")
        axes[0].axhline(
            model.fragments * model.packet_ms / max(bounds),
            color="grey",
            linestyle="--",
            linewidth=0.9,
            label="bound of the linear program",
        )
        if lossless and len(losses) > 1:
            _draw_curves(axes, model, sum(lossless) / len(lossless), _logarithmic(losses[0], losses[-1]))
        axes[0].set_ylabel("mean round time (ms)")
        axes[0].set_ylim(0, 1.3 * max(line for points in times.values() for p in points for line in p.values))
        axes[1].set_yscale("log")
        axes[1].set_ylim(0.3 * model.repeats(losses[0]), 5 * model.repeats(losses[-1]))
        axes[1].set_ylabel("resends of a worker for each fragment")
        explain_marks(axes[0], [point.verdict for points in times.values() for point in points])
        handles, labels = axes[0].get_legend_handles_labels()
        more, words = axes[1].get_legend_handles_labels()
        made.legend([*handles, more[-1]], [*labels, words[-1]], loc="outside lower center", ncols=2)
        return save(made, path, results.heading)


def _draw_curves(axes: Sequence[Any], model: LossModel, lossless_ms: float, losses: Sequence[float]) -> None:
    axes[0].axhline(lossless_ms, color="grey", linewidth=0.9, label="measured without loss")
    for repair_ms, dashes, label in (
        (model.round_trip_ms + model.min_timeout_ms, ":", "analytic: 2np timeouts for each slot use"),
        (model.window * model.packet_ms, "-.", "analytic: round trips in place of timeouts"),
    ):
        curve = [model.round_time_ms(lossless_ms, loss, repair_ms=repair_ms) for loss in losses]
        axes[0].plot(losses, curve, dashes, color="black", linewidth=1.0, label=label)
    repeats = [model.repeats(loss) for loss in losses]
    axes[1].plot(losses, repeats, "--", color="black", linewidth=1.0, label="analytic: (n + 3)p resends")


def _logarithmic(first: float, last: float, count: int = 60) -> list[float]:
    return [first * (last / first) ** (step / (count - 1)) for step in range(count)]
