"""Runs one point wherever it may be asked for: here, in a sandbox, in a process of a pool, or on another machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.capabilities import VIRTUAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.experiments.captures import CaptureOrder
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.engine.point import run_point
from gradbed.experiments.phases import PointResult, Progress
from gradbed.experiments.records.run_folder import StoredPoint
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import PointTask
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system


@dataclass(frozen=True)
class PointOrder:
    """A point as plain values that can be sent to another process. configuration: as JSON. attempts: in real time, as
    long as the machine cannot keep up. limit_s: of this machine's time, after which it is ended; None: none. threads:
    as of PointTask."""

    digest: str
    system: str
    configuration: Mapping[str, Any]
    seed: int
    scale_factor: float
    folder: Path
    capture: CaptureOrder = False
    attempts: int = 1
    limit_s: float | None = None
    threads: int = 1


def measure(
    order: PointOrder,
    on_progress: Callable[[Sequence[Progress]], None] = lambda bars: None,
    onlooker: Onlooker = NOBODY,
) -> StoredPoint:
    """Run it; what is to be kept of it. UserError for what the user can put right."""
    system = find_system(order.system)
    configuration = system.configuration.model_validate(order.configuration).canonical()
    if order.threads > 1:
        VIRTUAL_CLOCK.require(configuration.clock == "virtual", "--threads")
        if not system.quiet_switches:
            why = f"a switch of {system.name} may tell its controller something at any time"
            raise UserError(f"--threads: {why}: leave it out")
    scale = Scale(order.scale_factor)
    order.folder.mkdir(parents=True, exist_ok=True)
    task = PointTask(configuration, order.seed, scale, order.folder, order.capture, order.threads)
    started_s = time.time()
    result = run_point(system, task, on_progress, onlooker)
    return StoredPoint(
        digest=order.digest,
        seed=order.seed,
        row=_row(system, task, result, time.time() - started_s),
        tables={name: [dict(row) for row in rows] for name, rows in result.tables.items()},
        decisions=json.loads(json.dumps(result.decisions, sort_keys=True)),
        failures=list(result.failures),
    )


def _row(system: System, task: PointTask, result: PointResult, seconds: float) -> dict[str, object]:
    """Rates and times are nominal; seconds: what the run took. On the virtual clock that is left out, since the rows
    of two runs are the same there to the last byte."""
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
        **result.fidelity.columns(),
    }
