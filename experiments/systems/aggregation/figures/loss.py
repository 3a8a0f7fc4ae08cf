"""Figure 3: round time, and packets sent again, against loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.formats.lanes import frame_bytes

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


@figure_kind("aggregation-loss", columns=2, width_in=4.9, height_in=3.9)
def draw(sheet: Sheet) -> None:
    """Left: the mean of rounds, since rare timers are what is asked for."""
    axes, results = sheet.axes, sheet.results
    policy = itemgetter("workload.congestion_control")
    model = LossModel.of(next(iter(results.configurations().values())))
    each = model.fragments * model.workers
    times = results.derived_series(itemgetter(X), lambda row: 1e3 * row["mean_round_time_s"], policy)
    repeats = results.derived_series(itemgetter(X), lambda row: row["resends"] / each if row[X] > 0 else None, policy)
    losses = sorted({point.x for points in repeats.values() for point in points})
    lossless = [value for points in times.values() for point in points if point.x == 0 for value in point.values]
    bound = max(point.row["bound_bps_normalised"] for point in results.points)
    for panel, series in zip(axes, (times, repeats), strict=True):
        lossy = {name: [point for point in points if point.x > 0] for name, points in series.items()}
        draw_all(panel, lossy, names=WORDS)
        panel.set(xscale="log", xlabel="loss of every link, in either direction (p)")
    least_ms = model.fragments * model.packet_ms / bound
    axes[0].axhline(least_ms, color="grey", linestyle="--", linewidth=0.9, label="bound of the linear program")
    if lossless and len(losses) > 1:
        _draw_curves(axes, model, sum(lossless) / len(lossless), _logarithmic(losses[0], losses[-1]))
    slowest = max(line for points in times.values() for p in points for line in p.values)
    axes[0].set(ylabel="mean round time (ms)", ylim=(0, 1.3 * slowest))
    axes[1].set(
        yscale="log",
        ylim=(0.3 * model.repeats(losses[0]), 5 * model.repeats(losses[-1])),
        ylabel="resends of a worker for each fragment",
    )
    explain_marks(axes[0], verdicts(times))
    handles, labels = axes[0].get_legend_handles_labels()
    more, words = axes[1].get_legend_handles_labels()
    axes[0].figure.legend([*handles, more[-1]], [*labels, words[-1]], loc="outside lower center", ncols=2)


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
