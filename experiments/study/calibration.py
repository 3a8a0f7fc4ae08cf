"""Calibration: the factor by which studies are slowed down on this machine (experiments/scale.py).

The factor is measured on a reference network, for a nominal rate of NOMINAL_RATE_MBPS on every link: the fastest rate
at which a run's verdict is valid, over the nominal rate. It is stored per machine, since a home folder may be shared
between several.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gradbed.common.errors import UserError, say
from gradbed.common.modules import COMMAND
from gradbed.common.namespaces import require_root
from gradbed.experiments.results.run_folder import processor_model
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.experiments.tables.files import replace_file
from gradbed.experiments.validity.verdict import ValidityReport

NOMINAL_RATE_MBPS = 100.0
"""What studies take a link to be. A machine that carries more does not run them faster."""

UNCALIBRATED_FACTOR = 0.2
"""20 Mbit/s links: what two slow cores were seen to carry while nothing else ran."""

RATES_MBPS = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 65.0, 80.0, 100.0)
"""Tried in this order."""

SAFETY = 0.8
"""Of the fastest valid rate: studies differ from the reference network, and machines have other things to do."""


@dataclass(frozen=True)
class CalibrationRun:
    """A run at one rate, with its verdict."""

    rate_mbps: float
    verdict: str
    reasons: Sequence[str]


@dataclass(frozen=True)
class Calibration:
    """Stored calibration of a machine: its factor, and how it was found."""

    factor: float
    carried_mbps: float
    trials: Sequence[CalibrationRun]
    machine: str
    processor: str
    processors: int
    date: str

    @property
    def scale(self) -> Scale:
        return Scale(self.factor)


def machine_key() -> str:
    """Tells machines apart: of machine-id(5), processor model and number of processors usable."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except OSError:
        identity = os.uname().nodename
    text = f"{identity} {processor_model()} {len(os.sched_getaffinity(0))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def calibration_file() -> Path:
    """GRADBED_CALIBRATION, else XDG_CONFIG_HOME/gradbed/calibration-MACHINE.json, else the same under ~/.config."""
    own = os.environ.get("GRADBED_CALIBRATION")
    if own:
        return Path(own)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "gradbed" / f"calibration-{machine_key()}.json"


def load_calibration() -> Calibration | None:
    """Return this machine's calibration; None if it has none.

    Raises:
        UserError: the file is damaged or cannot be read. A study would run at another scale than its figures before.
    """
    path = calibration_file()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        calibration = Calibration(**{**data, "trials": [CalibrationRun(**trial) for trial in data["trials"]]})
        Scale(calibration.factor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read the calibration {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise UserError(
            f"the calibration {path} is damaged: run 'sudo {COMMAND} calibrate' again, or remove it, or give --scale"
        ) from None
    return calibration if calibration.machine == machine_key() else None


def study_scale() -> Scale:
    """The scale for a study on this machine; without a calibration a cautious one, with a warning."""
    calibration = load_calibration()
    if calibration is not None:
        return calibration.scale
    print(
        f"gradbed: this machine is not calibrated: links run at {UNCALIBRATED_FACTOR:g} of their nominal rate; "
        f"'sudo {COMMAND} calibrate' finds what it carries",
        file=sys.stderr,
    )
    return Scale(UNCALIBRATED_FACTOR)


def find_factor(
    run_at: Callable[[float], ValidityReport], on_trial: Callable[[CalibrationRun], None] = lambda trial: None
) -> tuple[float, float, list[CalibrationRun]]:
    """(factor, fastest valid rate in Mbit/s, trials), by runs at rising rates until two in turn are not valid.

    One bad run may be somebody else's doing, so a rate that fails is tried a second time. If even the slowest fails,
    that rate is taken, and the verdict on each run will tell.
    """
    trials: list[CalibrationRun] = []
    carried_mbps = RATES_MBPS[0]
    for rate_mbps in RATES_MBPS:
        for _ in range(2):
            report = run_at(rate_mbps)
            trials.append(CalibrationRun(rate_mbps, report.verdict, list(report.reasons)))
            on_trial(trials[-1])
            if report.verdict == "valid":
                break
        else:
            break
        carried_mbps = rate_mbps
    factor = 1.0 if carried_mbps >= NOMINAL_RATE_MBPS else SAFETY * carried_mbps / NOMINAL_RATE_MBPS
    return factor, carried_mbps, trials


def store(factor: float, carried_mbps: float, trials: Sequence[CalibrationRun]) -> Path:
    """Keep a calibration of this machine; where. UserError if it cannot be written."""
    calibration = Calibration(
        factor=factor,
        carried_mbps=carried_mbps,
        trials=trials,
        machine=machine_key(),
        processor=processor_model(),
        processors=len(os.sched_getaffinity(0)),
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )
    path = calibration_file()
    text = json.dumps(asdict(calibration), indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot keep the calibration in {path}: {error.strerror}") from None
    return path


# ---- The calibration run ----


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
