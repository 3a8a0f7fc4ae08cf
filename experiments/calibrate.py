"""Finds what this machine carries: what `gradbed calibrate` does."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from experiments.calibration import NOMINAL_RATE_MBPS, Trial, find_factor, store
from experiments.fidelity.report import FidelityMeasures, FidelityReport
from experiments.scale import Scale
from experiments.system import PointTask
from experiments.systems.aggregation.system import AggregationConfiguration, AggregationSystem
from switch.errors import UserError
from topo.namespaces import require_root
from topo.sandbox import run_in_sandbox

TRIAL_S = 3.0
VALUES = 35_200
EXPECTED_SHARE = 0.6
"""Of the link rate, that the reference network makes of it; only the length of a trial depends on it."""

BUSY_OTHERS = 0.15
"""Of all processors: so much used by other programs makes a calibration worth little."""


def run_calibration(anyway: bool = False) -> int:
    """Try rising rates, store the factor, and say so. Exit status 0; 1 without storing if other programs were busy,
    unless `anyway`. UserError for what the user can put right."""
    require_root("gradbed calibrate")
    others: list[float] = []

    def run_at(rate_mbps: float) -> FidelityReport:
        report = measure_at(rate_mbps)
        if report.measures.machine_others is not None:
            others.append(report.measures.machine_others)
        return report

    factor, carried_mbps, trials = find_factor(run_at, _show)
    print(f"This machine carries {carried_mbps:g} Mbit/s links: studies run at {factor:g} of their nominal rates.")
    if others and max(others) > BUSY_OTHERS and not anyway:
        used = 100 * max(others)
        print(f"Not kept: other programs used up to {used:.0f} % of the processors. End them, or say --anyway.")
        return 1
    print(f"Kept in {store(factor, carried_mbps, trials)}")
    return 0


def measure_at(rate_mbps: float) -> FidelityReport:
    """The fidelity of the reference network with links of this emulated rate: a k=4 fat-tree on which eight workers
    sum random gradients in up to five switches, which keeps many links busy at once."""
    with tempfile.TemporaryDirectory(prefix="gradbed-calibrate-") as folder:
        told = Path(folder) / "report.json"
        status = run_in_sandbox(lambda: _run(rate_mbps, Path(folder), told), "gradbed calibrate")
        if status == 130:
            raise KeyboardInterrupt
        if status != 0:
            said = told.read_text(encoding="utf-8") if told.exists() else f"status {status}"
            raise UserError(f"the reference network does not run: {said}")
        report = json.loads(told.read_text(encoding="utf-8"))
    return FidelityReport(FidelityMeasures(**report["measures"]), report["verdict"], report["reasons"])


def _run(rate_mbps: float, folder: Path, told: Path) -> int:
    configuration = AggregationConfiguration.model_validate(
        {
            "topology": {"kind": "fat-tree:4", "link": {"rate_mbps": NOMINAL_RATE_MBPS}},
            "switches": {"placement": "greedy", "maximum": 4},
            "workload": {"workers": 8, "values": VALUES, "rounds": rounds_at(rate_mbps)},
        }
    )
    task = PointTask(configuration, seed=1, scale=Scale(rate_mbps / NOMINAL_RATE_MBPS), folder=folder)
    try:
        report = AggregationSystem().run(task).fidelity
    except UserError as error:
        told.write_text(str(error), encoding="utf-8")
        return 2
    told.write_text(json.dumps(asdict(report)), encoding="utf-8")
    return 0


def rounds_at(rate_mbps: float) -> int:
    """Rounds that keep the network busy for about TRIAL_S."""
    round_s = 32 * VALUES / (EXPECTED_SHARE * rate_mbps * 1e6)
    return max(3, math.ceil(TRIAL_S / round_s))


def _show(trial: Trial) -> None:
    reason = f": {trial.reasons[0]}" if trial.reasons else ""
    print(f"{trial.rate_mbps:6g} Mbit/s  {trial.verdict}{reason}", file=sys.stderr, flush=True)
