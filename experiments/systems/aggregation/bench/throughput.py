"""Does measured throughput come near the bound of the linear program? What `gradbed bench throughput` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.bench.report import Columns, bench_console, rows_table
from experiments.calibration import study_scale
from experiments.fidelity.report import FidelityReport, VerdictWord
from experiments.scale import Scale
from experiments.study.running.execution import run_now
from experiments.systems.aggregation.configuration import AggregationConfiguration

LEAST_SHARE = 0.8
"""Of the bound, with one job on links that nobody else uses, when the machine is not the limit."""

VALUES = 211_200
"""600 packets: the windows' start and the last packets' way are a few hundredths of a round."""

ROUNDS = 4
ATTEMPTS = 3
"""A machine that was busy once may not be so again."""


@dataclass(frozen=True)
class Setting:
    """A network, the switches that sum, and how many workers send."""

    topology: str
    placement: str
    programmable: int = 0
    workers: int = 8

    @property
    def name(self) -> str:
        limit = f", M = {self.programmable}" if self.programmable else ""
        return f"{self.topology}, {self.workers} workers, {self.placement}{limit}"


SETTINGS = (
    Setting("star:9", "none"),
    Setting("star:9", "server-tor"),
    Setting("fat-tree:4", "server-tor"),
    Setting("fat-tree:4", "greedy", 1),
    Setting("fat-tree:4", "greedy", 2),
    Setting("leaf-spine:4,2,4", "greedy", 1),
    Setting("leaf-spine:4,2,4", "every-tor"),
)
"""Where packets can reach at least 90 % of the bound (controller.systems.aggregation.placement.realised)."""


@dataclass(frozen=True)
class Reached:
    """Rates in units of the link rate. throughput: what switches counted of the slowest worker; goodput: what the
    workers' rounds amount to."""

    setting: Setting
    throughput: float
    goodput: float
    bound: float
    verdict: VerdictWord
    reasons: Sequence[str]
    failures: Sequence[str]

    @property
    def share(self) -> float:
        return self.throughput / self.bound

    @property
    def judgement(self) -> str:
        """exceeded and missed are failures; a machine that was the limit leaves it open."""
        if self.failures:
            return "wrong"
        if self.share > 1 + 1e-6:
            return "exceeded"
        if self.share >= LEAST_SHARE:
            return "met"
        return "missed" if self.verdict == "valid" else "open"


COLUMNS: Columns = (
    ("setting", lambda row: row.setting.name),
    ("measured", lambda row: f"{row.throughput:.3f}"),
    ("bound", lambda row: f"{row.bound:.3f}"),
    ("share", lambda row: f"{100 * row.share:.1f} %"),
    ("fidelity", lambda row: "; ".join([row.verdict, *row.reasons[:1]])),
    ("80 %", lambda row: row.judgement),
)


def run_bench_throughput(settings: Sequence[Setting] = SETTINGS, factor: float | None = None) -> int:
    """Measure all settings and print a table. Exit status 1 if throughput exceeded the bound, sums were wrong, or
    less than LEAST_SHARE was reached though the machine was not the limit."""
    used = study_scale() if factor is None else Scale(factor)
    rows = []
    for setting in settings:
        rows.append(reached := measure(setting, used))
        print(f"{setting.name}: {100 * reached.share:.1f} % ({reached.verdict})", file=sys.stderr, flush=True)
    title = f"Throughput / link rate, links at {used.factor:g} of 100 Mbit/s"
    bench_console().print(rows_table(title, COLUMNS, rows, words=("setting", "fidelity")))
    return int(any(row.judgement in ("exceeded", "missed", "wrong") for row in rows))


def measure(setting: Setting, scale: Scale) -> Reached:
    """One setting; again, if the machine was the limit and too little was reached."""
    for _ in range(ATTEMPTS):
        reached = _measure_once(setting, scale)
        if reached.judgement != "open":
            break
    return reached


def _measure_once(setting: Setting, scale: Scale) -> Reached:
    configuration = AggregationConfiguration.model_validate(
        {
            "topology": {"kind": setting.topology},
            "switches": {"placement": setting.placement, "programmable": setting.programmable},
            "workload": {
                "workers": setting.workers, "values": VALUES, "rounds": ROUNDS, "window_fragments": 64,
            },
        }
    ).canonical()  # fmt: skip
    point = run_now("aggregation", configuration, scale)
    return Reached(
        setting,
        point.row["wire_throughput_bps_normalised"],
        point.row["throughput_bps_normalised"],
        point.row["bound_bps_normalised"],
        point.row["verdict"],
        FidelityReport.of_columns(point.row).reasons,
        point.failures,
    )
