"""Run one trial in this process, wherever it was asked for: with its time limit and a progress bar, and its outcome
in the form in which it travels between processes and machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass, replace
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from gradbed.common.capabilities import VIRTUAL_CLOCK
from gradbed.common.errors import ProcessLost, UserError, trouble, unforeseen
from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.engine.trial import OnProgress, run_trial
from gradbed.experiments.phases import Progress, TrialResult
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system

# ---- Outcomes ----


@dataclass(frozen=True)
class BrokenTrial:
    """A trial that ended without a result."""

    reason: str
    """One line for people."""
    details: str
    """For the log, as a rule a traceback."""
    is_lost: bool = False
    """Whether a process of gradbed was lost, which is no mistake of the user's."""


Outcome = TrialRecord | BrokenTrial


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    return {"broken" if isinstance(outcome, BrokenTrial) else "record": asdict(outcome)}


def outcome_from_json(plain: dict[str, Any]) -> Outcome:
    return BrokenTrial(**plain["broken"]) if "broken" in plain else TrialRecord(**plain["record"])


def outcome_of(future: Any) -> Outcome:
    """Return the outcome of a trial that ran in a process pool (`run_task_as_json`)."""
    try:
        return outcome_from_json(future.result())
    except BrokenExecutor:
        reason = "a process that ran trials was killed (out of memory?); what is done is kept: go on with --resume"
        return BrokenTrial(reason, traceback.format_exc(), is_lost=True)
    except Exception as error:
        return BrokenTrial(unforeseen(error), traceback.format_exc())


# ---- Time limit ----


GRACE_S = 60.0
"""How long a network may take to come down after the limit."""
STATUS = 124
"""Exit status of a process that its time limit ended, as of timeout(1)."""


@contextlib.contextmanager
def time_limit(limit_s: float | None) -> Iterator[None]:
    """Raise UserError in the block once it has taken `limit_s` seconds, and end the process GRACE_S after that.

    None is no limit. Only the main thread receives signals: in any other thread there is no limit.
    """
    if limit_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    is_late = False

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal is_late
        if is_late:
            os._exit(STATUS)
        is_late = True
        raise UserError(f"not at its end after {limit_s:g} s")

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s, GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


# ---- Progress bar ----


@contextlib.contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """Yield a function that shows on a terminal how far every job is, each phase's below those before."""
    console = Console(stderr=True)
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    shown: dict[str, TaskID] = {}
    with bars:
        setting_up: TaskID | None = bars.add_task("setting up", total=None, note="")

        def show(jobs: Sequence[Progress]) -> None:
            nonlocal setting_up
            if setting_up is not None:
                bars.remove_task(setting_up)
                setting_up = None
            for job in jobs:
                if job.label not in shown:
                    shown[job.label] = bars.add_task(job.label, total=job.total, note="")
                bars.update(shown[job.label], completed=job.completed, note=job.note)

        yield show


# ---- Running a task ----


def run_task(task: TrialTask, bars: bool = False, observer: TrialObserver = NO_OBSERVER) -> Outcome:
    """Run a trial in this process and return its outcome, however it ends.

    Args:
        task: What to run.
        bars: Show how far it is.
        observer: Receives callbacks while the trial runs.
    """
    try:
        system = find_system(task.system)
        task = replace(task, configuration=task.configuration.canonical())
        _check_threads(system, task)
        task.folder.mkdir(parents=True, exist_ok=True)
        started_s = time.time()
        with time_limit(task.limit_s), progress_bars() if bars else contextlib.nullcontext(_ignore) as on_progress:
            result = run_trial(system, task, on_progress, observer)
        return TrialRecord(
            digest=task.digest,
            seed=task.seed,
            values=_values(system, task, result, time.time() - started_s),
            tables={name: [dict(row) for row in rows] for name, rows in result.tables.items()},
            decisions=json.loads(json.dumps(result.decisions, sort_keys=True)),
            failures=list(result.failures),
        )
    except UserError as error:
        return BrokenTrial(str(error), str(error))
    except ProcessLost as error:
        return BrokenTrial(str(error), f"{traceback.format_exc()}\n{error.log}", is_lost=True)
    except Exception as error:
        reason = trouble(error) or unforeseen(error)
        return BrokenTrial(str(reason), traceback.format_exc())


def run_task_as_json(task: TrialTask) -> dict[str, Any]:
    return outcome_to_json(run_task(task))


def _ignore(bars: Sequence[Progress]) -> None: ...


def _check_threads(system: System, task: TrialTask) -> None:
    """Raise UserError where a trial cannot be simulated on several threads."""
    if task.threads > 1:
        VIRTUAL_CLOCK.require(task.configuration.clock == "virtual", "--threads")
        if not system.switches.quiet:
            why = f"a switch of {system.name} may tell its controller something at any time"
            raise UserError(f"--threads: {why}: leave it out")


def _values(system: System, task: TrialTask, result: TrialResult, seconds: float) -> dict[str, object]:
    """Return the trial's columns of the table of trials; rates and times are nominal.

    seconds: what the run took. Left out on the virtual clock, where the rows of two runs are the same to the last
    byte.
    """
    rate_mbps = task.configuration.topology.link.rate_mbps
    normalised = {}
    for name, metric in system.metrics.items():
        value = result.metrics.get(name)
        if metric.scales is not None and rate_mbps is not None and isinstance(value, (int, float)):
            rate_bps = 1e6 * rate_mbps
            normalised[f"{name}_normalised"] = value / rate_bps if metric.scales == "rate" else value * rate_bps
    return {
        **{name: result.metrics.get(name) for name in system.metrics},
        **normalised,
        "clock": task.configuration.clock,
        "scale_factor": task.scale.factor,
        "link_rate_bps": None if rate_mbps is None else 1e6 * rate_mbps,
        "failures": "; ".join(result.failures),
        **({"seconds": seconds} if task.configuration.clock == "real" else {}),
        **result.validity.columns(),
    }
