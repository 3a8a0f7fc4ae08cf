"""How long a fabric takes to come up, and how long a whole command.

Bring-up: from nothing to a network that is ready to carry traffic, with every switch loaded and its tables filled, a
job registered and its agents waiting to begin. Each is made in a sandbox of its own. The first of a kind fills the
caches and is not counted.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.aggregation import make_testbed, make_trainings
from experiments.config import AggregationConfig
from experiments.run_folder import RunFolder
from experiments.systems.aggregation.programmable import choose_programmable
from switch.errors import UserError
from topo.json_lines import own_program
from topo.registry import parse_topology
from topo.sandbox import run_in_sandbox

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
    table.add_row("gradbed run aggregation --rounds 1, as a whole", "", "", f"{command_s:.2f} s", "")
    Console().print(table)
    return int(missed)


def bring_up(topology: str) -> BringUp:
    """One network, up and down again. UserError if it does not come up."""
    with tempfile.TemporaryDirectory(prefix="gradbed-") as folder:
        found = Path(folder) / "bring_up.json"
        if run_in_sandbox(lambda: _in_sandbox(topology, Path(folder), found), "gradbed bench start") != 0:
            raise UserError(f"{topology} did not come up")
        return BringUp(**json.loads(found.read_text()))


def whole_command() -> float:
    """Seconds that the experiment takes with one round, from the command line to its end."""
    with tempfile.TemporaryDirectory(prefix="gradbed-") as folder:
        start_s = time.monotonic()
        outcome = subprocess.run(
            own_program("cli", "run", "aggregation", "--rounds", "1", "--output", folder),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        if outcome.returncode != 0:
            raise UserError(f"gradbed run aggregation: {outcome.stderr.strip() or outcome.stdout.strip()}")
        return time.monotonic() - start_s


def _in_sandbox(topology_name: str, folder: Path, found: Path) -> int:
    from controller.planning.hosts import choose_hosts_of_jobs
    from experiments.agents import Agents
    from experiments.systems.aggregation.agents import MODULE
    from experiments.training_run import start_jobs

    config = AggregationConfig(topology=topology_name, workers=WORKERS, rounds=1, output=folder)
    topology = parse_topology(config.topology, config.link_model)
    run_folder = RunFolder(folder, "start")
    start_s = time.monotonic()
    hosts = choose_hosts_of_jobs(topology, config.jobs, config.workers)
    choice = choose_programmable(topology, hosts, config.planner_options)
    testbed = make_testbed(config, topology, choice, run_folder)
    with Agents(run_folder.logs, testbed.network, preload=[MODULE]) as agents, testbed:
        up_s = time.monotonic()
        start_jobs(testbed, agents, make_trainings(config, hosts, choice.requests), config)
        ready_s = time.monotonic()
    found.write_text(json.dumps(asdict(BringUp(up_s - start_s, ready_s - up_s))))
    return 0
