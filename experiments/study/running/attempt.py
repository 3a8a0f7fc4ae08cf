"""One try at a point in this process: with an end for what does not come to one, a progress bar, and what came of it,
as it travels between processes and machines.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from gradbed.common.errors import ProcessLost, UserError, trouble, unforeseen
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.phases import Progress
from gradbed.experiments.records.run_folder import StoredPoint
from gradbed.experiments.study.running.measure import PointOrder, measure

# ---- An end for what does not come to one ----


GRACE_S = 60.0
"""To take a network down in, after the limit."""
STATUS = 124
"""As of timeout(1)."""


@contextlib.contextmanager
def time_limit(limit_s: float | None) -> Iterator[None]:
    """UserError in the block once it has taken so long; where it does not end then either, the process does. None:
    no limit. Only the main thread gets signals: elsewhere there is no limit."""
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


# ---- A progress bar ----


@contextlib.contextmanager
def progress_bars() -> Iterator[Callable[[Sequence[Progress]], None]]:
    """A function that shows how far every job is, each phase's below those before; on a terminal."""
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
    tasks: dict[str, TaskID] = {}
    with bars:
        setting_up: TaskID | None = bars.add_task("setting up", total=None, note="")

        def show(jobs: Sequence[Progress]) -> None:
            nonlocal setting_up
            if setting_up is not None:
                bars.remove_task(setting_up)
                setting_up = None
            for job in jobs:
                if job.label not in tasks:
                    tasks[job.label] = bars.add_task(job.label, total=job.total, note="")
                bars.update(tasks[job.label], completed=job.completed, note=job.note)

        yield show


# ---- The try, and what came of it ----


@dataclass(frozen=True)
class Broken:
    """A point without a result. reason: one line; details: for the log. is_lost: a process of gradbed was lost, which
    is no mistake of the user's."""

    reason: str
    details: str
    is_lost: bool = False


Outcome = StoredPoint | Broken


def attempt(order: PointOrder, bars: bool = False, onlooker: Onlooker = NOBODY) -> Outcome:
    """Run a point in this process; whatever it ends with. bars: show how far it is."""
    try:
        with time_limit(order.limit_s):
            if not bars:
                return measure(order, onlooker=onlooker)
            with progress_bars() as on_progress:
                return measure(order, on_progress, onlooker)
    except UserError as error:
        return Broken(str(error), str(error))
    except ProcessLost as error:
        return Broken(str(error), f"{traceback.format_exc()}\n{error.log}", is_lost=True)
    except Exception as error:
        reason = trouble(error) or unforeseen(error)
        return Broken(str(reason), traceback.format_exc())


def attempt_plain(order: PointOrder) -> dict[str, Any]:
    return as_plain(attempt(order))


def outcome_of(future: Any) -> Outcome:
    try:
        return from_plain(future.result())
    except BrokenExecutor:
        reason = "a process that ran points was killed (out of memory?); what is done is kept: go on with --resume"
        return Broken(reason, traceback.format_exc(), is_lost=True)
    except Exception as error:
        return Broken(unforeseen(error), traceback.format_exc())


def as_plain(outcome: Outcome) -> dict[str, Any]:
    kind = "broken" if isinstance(outcome, Broken) else "stored"
    return {kind: asdict(outcome)}


def from_plain(plain: dict[str, Any]) -> Outcome:
    return Broken(**plain["broken"]) if "broken" in plain else StoredPoint(**plain["stored"])
