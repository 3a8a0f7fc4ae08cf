"""The aggregation experiment: one job trained twice over one network, and what that did to the server's link."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from experiments import accounting, report
from experiments.config import AggregationConfig
from experiments.outcome import ModeOutcome, RoundOutcome
from experiments.programs import aggregation_program
from experiments.run_folder import RunFolder, environment
from switch.build import compiler
from switch.errors import UserError
from topo.namespaces import require_root
from topo.registry import parse_topology
from topo.sandbox import run_in_sandbox

PARAMETER_SERVER = "parameter server"
IN_NETWORK = "in-network"


def run_aggregation(config: AggregationConfig) -> int:
    """Run the experiment and leave table, figure and data in config.output.

    Exit status 0; 1 if weights differ from the single-process reference or counters disagree. UserError for what
    the user can put right.
    """
    from controller.planning.hosts import choose_hosts

    topology = parse_topology(config.topology, config.link_model)
    choose_hosts(topology, config.workers)
    require_root("gradbed run")
    if config.switch == "gradbed":
        compiler()
    folder = RunFolder(config.output, "aggregation")
    folder.write_json("configuration.json", json.loads(config.model_dump_json()))
    folder.write_json("environment.json", environment())
    return run_in_sandbox(lambda: _in_sandbox(config, folder), "gradbed run")


def _in_sandbox(config: AggregationConfig, folder: RunFolder) -> int:
    try:
        outcomes = _measure(config, folder)
    except UserError as error:
        print(f"{error.prefix}{error}", file=sys.stderr)
        return 2
    _write(outcomes, folder)
    console = Console()
    console.print(report.table(outcomes))
    console.print(f"Figure and data: {folder.path}/", soft_wrap=True, highlight=False)
    failures = _failures(outcomes)
    for line in failures:
        console.print(f"FAILED: {line}", style="bold red", soft_wrap=True, highlight=False)
    if not failures:
        rounds = sum(outcome.rounds for outcome in outcomes)
        console.print(
            f"Weights bit for bit those of the single-process reference: {rounds} rounds on {config.workers} "
            "workers each. Switch and host counters agree.",
            soft_wrap=True,
            highlight=False,
        )
    return 1 if failures else 0


def _measure(config: AggregationConfig, folder: RunFolder) -> list[ModeOutcome]:
    from controller.planning.hosts import choose_hosts
    from experiments.agents import Agents
    from experiments.testbed import Testbed
    from experiments.training_run import run_training
    from hosts.learning.reference import reference
    from hosts.learning.settings import TrainingSettings

    topology = parse_topology(config.topology, config.link_model)
    workers, server = choose_hosts(topology, config.workers)
    training = TrainingSettings(
        hidden_units=config.hidden_units, rounds=config.rounds, batch_samples=config.batch_samples, seed=config.seed
    )
    with _progress() as progress:
        setting_up = progress.add_task(f"setting up {config.topology}", total=None, note="")
        testbed = Testbed(
            topology,
            aggregation_program(config.lanes, config.switch),
            folder.logs,
            switch_kind=config.switch,
            links=config.links,
            seed=config.seed,
        )
        outcomes = []
        with Agents(folder.logs) as agents, testbed:
            expected = list(reference(training, config.workers))
            progress.remove_task(setting_up)
            for mode in (PARAMETER_SERVER, IN_NETWORK):
                task = progress.add_task(mode, total=config.rounds, note="")

                def on_round(outcome: RoundOutcome, task: object = task) -> None:
                    note = f"{1e3 * outcome.round_time_s:6.1f} ms, accuracy {100 * outcome.accuracy:5.2f} %"
                    progress.update(task, completed=outcome.round + 1, note=note)  # type: ignore[arg-type]

                outcomes.append(
                    run_training(
                        testbed,
                        agents,
                        mode=mode,
                        aggregation=mode == IN_NETWORK,
                        workers=workers,
                        server=server,
                        training=training,
                        config=config,
                        reference=expected,
                        on_round=on_round,
                    )
                )
    return outcomes


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def _write(outcomes: Sequence[ModeOutcome], folder: RunFolder) -> None:
    from experiments.figure import draw

    folder.write_rows(
        "rounds.csv", [{"mode": outcome.mode, **asdict(row)} for outcome in outcomes for row in outcome.per_round]
    )
    folder.write_rows(
        "hosts.csv", [row for outcome in outcomes for row in accounting.rows(outcome.mode, outcome.accounts)]
    )
    folder.write_rows("summary.csv", report.summary_rows(outcomes))
    draw(outcomes, folder.path / "figure")


def _failures(outcomes: Sequence[ModeOutcome]) -> list[str]:
    """What makes the run worthless; at most a few lines of each kind."""
    lines = []
    for outcome in outcomes:
        found = [*outcome.mismatches, *accounting.disagreements(outcome.accounts)]
        lines += [f"{outcome.mode}, {line}" for line in found[:5]]
        if len(found) > 5:
            lines.append(f"{outcome.mode}, and {len(found) - 5} more")
    return lines
