"""Figure 4: throughput, and sums made in the switch, against slots for each live fragment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.aggregation.figures.modes import in_link_rates
from gradbed.experiments.systems.aggregation.metrics import SHARE
from gradbed.formats.lanes import frame_bytes

LINKS = 2
"""From a worker to the server."""


@dataclass(frozen=True)
class SlotModel:
    """Jobs on one switch; each worker has `window` fragments unacknowledged (docs/figures.md derives all)."""

    jobs: int
    workers: int
    window: int
    round_trip_packets: float
    """Round trip without queues, in packet times."""

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> SlotModel:
        """Of a point on a star."""
        workload, link = configuration["workload"], configuration["topology"]["link"]
        packet_us = 8 * frame_bytes(workload["lanes"]) / link["rate_mbps"]
        return cls(
            jobs=workload["jobs"],
            workers=workload["workers"],
            window=workload["window_fragments"],
            round_trip_packets=2 * LINKS * (1 + link["delay_us"] / packet_us),
        )

    @property
    def live(self) -> int:
        return self.jobs * self.window

    @staticmethod
    def thrown(slots_per_live: float, live: int) -> float:
        """Share of L live fragments that have a slot if all at once are thrown into A: (A/L)(1 - (1 - 1/A)^L)."""
        slots = slots_per_live * live
        return slots_per_live * (1 - (1 - 1 / slots) ** live) if slots > 1 else slots_per_live

    @staticmethod
    def in_turn(slots_per_live: float) -> float:
        """The same if each comes while the others hold what they have, as long as it is live: A / (A + L)."""
        return slots_per_live / (1 + slots_per_live)

    def dynamic_throughput(self, share: float) -> float:
        """In link rates: the server's link carries one packet of a fragment that was summed, else n."""
        return 1 / (share + (1 - share) * self.workers)

    def static_throughput(self, slots_per_live: float) -> float:
        """In link rates: no more fragments are on their way than a job has slots."""
        window = min(self.window, slots_per_live * self.window)
        return min(1.0, window / self.round_trip_packets)


@figure_kind("aggregation-slots", columns=2, width_in=4.9, height_in=3.8)
def draw(sheet: Sheet) -> None:
    [left, right], results = sheet.axes, sheet.results
    model = SlotModel.of(next(iter(results.configurations().values())))
    shares = _summed_shares(results)

    def places(row: Mapping[str, Any]) -> float:
        return float(row["switches.slots"]) / model.live

    policy = itemgetter("switches.slot_policy")
    throughput = results.derived_series(places, lambda row: in_link_rates(row, "throughput_bps"), policy)
    summed = results.derived_series(places, lambda row: shares.get(row["digest"]), policy)
    numbers = {name: number for number, name in enumerate(throughput)}
    ratios = sorted({point.x for points in throughput.values() for point in points})
    curve = [ratios[0] * (ratios[-1] / ratios[0]) ** (step / 80) for step in range(81)]
    for panel, series in ((left, throughput), (right, summed)):
        draw_all(panel, series, numbers=numbers, possible=SHARE)
        panel.set_xscale("log", base=2)
        panel.set(xlabel="slots for each live fragment (A / L)", ylim=(0, 1.08))
    dynamic = {"color": COLOURS[numbers.get("dynamic", 0)], "linewidth": 1.0}
    for model_share, dashes, label in (
        (lambda x: model.thrown(x, model.live), ":", "(A/L)(1 - (1 - 1/A)$^L$)"),
        (model.in_turn, "-.", "A / (A + L)"),
    ):
        right.plot(curve, [model_share(x) for x in curve], dashes, **dynamic)
        reached = [model.dynamic_throughput(model_share(x)) for x in curve]
        left.plot(curve, reached, dashes, **dynamic, label=f"dynamic, analytic: {label}")
    left.plot(
        curve,
        [model.static_throughput(x) for x in curve],
        ":",
        color=COLOURS[numbers.get("static", 1)],
        linewidth=1.0,
        label="static, analytic: slots / round trip",
    )
    alone = [row["bound_bps"] / row["link_rate_bps"] for row in _job_rows(results)]
    left.axhline(max(alone), color="black", linestyle="--", linewidth=1.0, label="bound of the linear program")
    left.set_ylabel("throughput of a job / link rate")
    right.set_ylabel("share summed in the switch")
    explain_marks(left, verdicts(throughput))
    legend_below(left, 2)


def _summed_shares(results: StudyResults) -> dict[str, float]:
    """Complete sums that the switch made over fragments of all jobs and rounds, by point."""
    configurations = results.configurations()
    shares = {}
    for row in results.table("events"):
        workload = configurations[row["digest"]]["workload"]
        fragments = workload["jobs"] * workload["rounds"] * math.ceil(workload["values"] / workload["lanes"])
        shares[row["digest"]] = row.get("completed", 0) / fragments
    return shares


def _job_rows(results: StudyResults) -> list[dict[str, Any]]:
    rates = {point.row["digest"]: point.row["link_rate_bps"] for point in (*results.points, *results.other_clock)}
    return [{**row, "link_rate_bps": rates[row["digest"]]} for row in results.table("jobs")]
