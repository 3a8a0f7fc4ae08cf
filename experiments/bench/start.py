"""How long a fabric takes to come up, and how long a whole command.

Bring-up: from nothing to a network that is ready to carry traffic, with every switch loaded and its tables filled, a
job registered and its agents waiting to begin. Each is made in a sandbox of its own. The first of a kind fills the
caches and is not counted.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from common.errors import UserError
from common.json_lines import own_program
from common.sandbox import run_in_sandbox
from common.scratch import scratch_folder
from experiments.bench.console import bench_console
from experiments.scale import Scale
from experiments.setup import PointTask
from experiments.systems import DEFAULT_SYSTEM, find_system
from experiments.testbeds.mininet_testbed import MininetTestbed

GOALS_S = {"fat-tree:4": 5.0, "fat-tree:6": 15.0}
"""By topology: what bring-up should take at most, from a warm cache."""

WORKERS = 8
COMMAND_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class BringUp:
    """Seconds, each from the beginning of the stage before it to the end of its own."""

    network_s: float
    """Hosts, links, switches, controller; pipelines and routes in every switch."""
    agents_s: float
    """The job in the switches, its agents in their hosts."""

    @property
    def total_s(self) -> float:
        return self.network_s + self.agents_s


def run_bench_start(repetitions: int) -> int:
    """Measure and print a table. Exit status 0; 1 if a goal is missed."""
    table = Table(title="Start, medians")
    for column in ("", "network", "job and agents", "together", "at most"):
        table.add_column(column, justify="left" if not column else "right")
    missed = False
    for topology, goal_s in GOALS_S.items():
        bring_up(topology)
        found = [bring_up(topology) for _ in range(repetitions)]
        total_s = statistics.median(each.total_s for each in found)
        missed |= total_s > goal_s
        table.add_row(
            f"{topology}, {WORKERS} workers",
            f"{statistics.median(each.network_s for each in found):.2f} s",
            f"{statistics.median(each.agents_s for each in found):.2f} s",
            f"{total_s:.2f} s",
            f"{goal_s:.0f} s",
        )
    whole_command()
    command_s = statistics.median(whole_command() for _ in range(repetitions))
    table.add_row(f"gradbed run {DEFAULT_SYSTEM} --rounds 1, as a whole", "", "", f"{command_s:.2f} s", "")
    bench_console().print(table)
    return int(missed)


def bring_up(topology: str) -> BringUp:
    """One network, up and down again. UserError if it does not come up."""
    with scratch_folder() as folder:
        found = folder / "bring_up.json"
        if run_in_sandbox(lambda: _in_sandbox(topology, folder, found), "gradbed bench start") != 0:
            raise UserError(f"{topology} did not come up")
        return BringUp(**json.loads(found.read_text()))


def whole_command() -> float:
    """Seconds that the experiment takes with one round, from the command line to its end."""
    with scratch_folder() as folder:
        start_s = time.monotonic()
        outcome = subprocess.run(
            own_program("cli", "run", DEFAULT_SYSTEM, "--rounds", "1", "--output", str(folder)),
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
    point = system.point(PointTask(configuration, 1, Scale(), folder))
    (phase,) = point.phases
    with MininetTestbed(system, point.network, PointTask(configuration, 1, Scale(), folder)) as testbed:
        up_s = time.monotonic()
        testbed.start_agents(phase.agents([testbed.add_job(request) for request in phase.requests]))
        ready_s = time.monotonic()
    found.write_text(json.dumps(asdict(BringUp(up_s - start_s, ready_s - up_s))))
    return 0
