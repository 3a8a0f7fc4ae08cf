"""One try at a point in this process, and what came of it, as it travels between processes and machines."""

from __future__ import annotations

import traceback
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass
from typing import Any

from gradbed.common.errors import ProcessLost, UserError, trouble, unforeseen
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.records.run_files import StoredPoint
from gradbed.experiments.study.running.measure import PointOrder, measure
from gradbed.experiments.study.running.progress import progress_bars
from gradbed.experiments.study.running.time_limit import time_limit


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
