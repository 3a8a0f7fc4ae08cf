"""Measure how long a network takes to come up, and how long a whole command takes.

Bring-up: from nothing to a network that is ready to carry traffic, with every switch loaded and its tables filled, a
job registered and its agents waiting to begin. Each is made in a sandbox of its own. The first of a kind fills the
caches and is not counted.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.json_lines import own_program
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from tools.bench.measure import Goal, exit_status

GOALS_S = {"fat-tree:4": 5.0, "fat-tree:6": 15.0}
"""By topology: what bring-up should take at most, from a warm cache."""

WORKERS = 8
COMMAND_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class BringUp:
    """Seconds of each stage."""

    network_s: float
    """Hosts, links, switches, controller; pipelines and routes in every switch."""
    agents_s: float
    """The job in the switches, its agents in their hosts."""

    @property
    def total_s(self) -> float:
        """Both stages together."""
        return self.network_s + self.agents_s


def run_bench_start(repetitions: int) -> int:
    """Measure and print a table; exit status 1 if a goal is missed."""
    rows = []
    for topology, goal_s in GOALS_S.items():
        bring_up(topology)
        found = [bring_up(topology) for _ in range(repetitions)]
        network_s, agents_s, total_s = (
            statistics.median(getattr(each, stage) for each in found)
            for stage in ("network_s", "agents_s", "total_s")
        )
        goal = Goal(f"{topology}, {WORKERS} workers", goal_s, total_s, at_most=True)
        rows.append((goal, f"{network_s:.2f} s", f"{agents_s:.2f} s"))
    whole_command()
    command_s = statistics.median(whole_command() for _ in range(repetitions))
    whole = Goal(f"gradbed run {DEFAULT_SYSTEM} --rounds 1, as a whole", math.inf, command_s, at_most=True)
    rows.append((whole, "", ""))
    columns: Columns = (
        ("", lambda row: row[0].name),
        ("network", lambda row: row[1]),
        ("job and agents", lambda row: row[2]),
        ("together", lambda row: f"{row[0].measured:.2f} s"),
        ("at most", lambda row: f"{row[0].wanted:.0f} s" if row[0].wanted < math.inf else None),
    )
    make_console().print(rows_table("Start, medians", columns, rows, words=("",)))
    return exit_status(goal for goal, *_ in rows)


def bring_up(topology: str) -> BringUp:
    """Bring one network up and down again. UserError if it does not come up."""
    with scratch_folder() as folder:
        found = folder / "bring_up.json"
        if run_in_sandbox(lambda: _in_sandbox(topology, folder, found), "python -m tools.bench start") != 0:
            raise UserError(f"{topology} did not come up")
        return BringUp(**json.loads(found.read_text()))


def whole_command() -> float:
    """Return the seconds that a run of one round takes as a command."""
    with scratch_folder() as folder:
        start_s = time.monotonic()
        outcome = subprocess.run(
            own_program("gradbed", "run", DEFAULT_SYSTEM, "--rounds", "1", "--output", str(folder)),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        if outcome.returncode != 0:
            raise UserError(f"gradbed run {DEFAULT_SYSTEM}: {outcome.stderr.strip() or outcome.stdout.strip()}")
        return time.monotonic() - start_s


def _in_sandbox(topology: str, folder: Path, found: Path) -> int:
    system = find_system(DEFAULT_SYSTEM)
    configuration = system.configuration.model_validate(
        {"topology": {"kind": topology}, "workload": {"workers": WORKERS, "rounds": 1}}
    )
    start_s = time.monotonic()
    trial = system.trial(TrialTask(configuration, 1, Scale(), folder))
    (phase,) = trial.phases
    with RealRuntime(system, trial.network, TrialTask(configuration, 1, Scale(), folder)) as runtime:
        up_s = time.monotonic()
        runtime.agents.start(phase.agents([runtime.add_job(request) for request in phase.own_requests]))
        ready_s = time.monotonic()
    found.write_text(json.dumps(asdict(BringUp(up_s - start_s, ready_s - up_s))))
    return 0
