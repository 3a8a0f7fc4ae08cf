"""Finds what this machine carries: what `gradbed calibrate` does."""

from __future__ import annotations

import sys

from gradbed.common.errors import say
from gradbed.common.namespaces import require_root
from gradbed.experiments.calibration import NOMINAL_RATE_MBPS, CalibrationRun, find_factor, store
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.experiments.validity.verdict import ValidityReport

TRIAL_S = 3.0
BUSY_OTHERS = 0.15
"""Of all processors: so much used by other programs makes a calibration worth little."""


def run_calibration(anyway: bool = False) -> int:
    """Try rising rates, store the factor, and say so. Exit status 0; 1 without storing if other programs were busy,
    unless `anyway`. UserError for what the user can put right."""
    require_root("gradbed calibrate")
    others: list[float] = []

    def run_at(rate_mbps: float) -> ValidityReport:
        report = measure_at(rate_mbps)
        if report.measures.machine_others is not None:
            others.append(report.measures.machine_others)
        return report

    factor, carried_mbps, trials = find_factor(run_at, _show)
    say(
        f"This machine carries {carried_mbps:g} Mbit/s links: studies run at {factor:g} of their nominal rates.",
        sys.stdout,
    )
    if others and max(others) > BUSY_OTHERS and not anyway:
        used = 100 * max(others)
        say(
            f"Not kept: other programs used up to {used:.0f} % of the processors. End them, or say --anyway.",
            sys.stdout,
        )
        return 1
    say(f"Kept in {store(factor, carried_mbps, trials)}", sys.stdout)
    return 0


def measure_at(rate_mbps: float) -> ValidityReport:
    """Return the verdict on the reference network with links of this emulated rate."""
    configuration = find_system(DEFAULT_SYSTEM).calibration(rate_mbps, TRIAL_S)
    trial = run_single_trial(DEFAULT_SYSTEM, configuration, Scale(rate_mbps / NOMINAL_RATE_MBPS))
    return ValidityReport.of_columns(trial.row)


def _show(trial: CalibrationRun) -> None:
    reason = f": {trial.reasons[0]}" if trial.reasons else ""
    say(f"{trial.rate_mbps:6g} Mbit/s  {trial.verdict}{reason}", sys.stderr, hang=15)
