"""Does measured throughput come near the bound of the linear program? What `gradbed bench throughput` does."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.calibration import study_scale
from experiments.fidelity.report import VerdictWord
from experiments.scale import Scale
from experiments.system import PointTask
from experiments.systems.aggregation.system import AggregationConfiguration, AggregationSystem
from switch.errors import UserError
from topo.sandbox import run_in_sandbox

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
    maximum: int = 0
    workers: int = 8

    @property
    def name(self) -> str:
        limit = f", M = {self.maximum}" if self.maximum else ""
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


def run_bench_throughput(settings: Sequence[Setting] = SETTINGS, factor: float | None = None) -> int:
    """Measure all settings and print a table. Exit status 1 if throughput exceeded the bound, sums were wrong, or
    less than LEAST_SHARE was reached though the machine was not the limit."""
    used = study_scale() if factor is None else Scale(factor)
    table = Table(title=f"Throughput / link rate, links at {used.factor:g} of 100 Mbit/s")
    for name in ("setting", "measured", "bound", "share", "fidelity", "80 %"):
        table.add_column(name, justify="left" if name in ("setting", "fidelity") else "right")
    judgements = []
    for setting in settings:
        reached = measure(setting, used)
        judgements.append(reached.judgement)
        table.add_row(
            setting.name,
            f"{reached.throughput:.3f}",
            f"{reached.bound:.3f}",
            f"{100 * reached.share:.1f} %",
            "; ".join([reached.verdict, *reached.reasons[:1]]),
            reached.judgement,
        )
        print(f"{setting.name}: {100 * reached.share:.1f} % ({reached.verdict})", file=sys.stderr, flush=True)
    Console(highlight=False).print(table)
    return 1 if {"exceeded", "missed", "wrong"} & set(judgements) else 0


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
            "topology": {"kind": setting.topology, "link": {"rate_mbps": 100}},
            "switches": {"placement": setting.placement, "maximum": setting.maximum},
            "workload": {
                "workers": setting.workers, "values": VALUES, "rounds": ROUNDS, "window_fragments": 64,
            },
        }
    ).canonical()  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="gradbed-bench-") as folder:
        told = Path(folder) / "result.json"

        def body() -> int:
            result = AggregationSystem().run(PointTask(configuration, 1, scale, Path(folder)))
            told.write_text(
                json.dumps(
                    {
                        "metrics": dict(result.metrics),
                        "fidelity": asdict(result.fidelity),
                        "failures": list(result.failures),
                    }
                ),
                encoding="utf-8",
            )
            return 0

        status = run_in_sandbox(body, "gradbed bench throughput")
        if status == 130:
            raise KeyboardInterrupt
        if status != 0 or not told.exists():
            raise UserError(f"{setting.name} did not run: status {status}")
        result = json.loads(told.read_text(encoding="utf-8"))
    rate_bps = scale.rate_bps(configuration.topology.link.rate_mbps)
    assert rate_bps is not None
    return Reached(
        setting,
        result["metrics"]["wire_throughput_bps"] / rate_bps,
        result["metrics"]["throughput_bps"] / rate_bps,
        result["metrics"]["bound_bps"] / rate_bps,
        result["fidelity"]["verdict"],
        result["fidelity"]["reasons"],
        result["failures"],
    )
