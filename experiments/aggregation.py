"""The aggregation experiment: jobs trained twice over one network, and what that did to the servers' links."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from experiments import accounting
from experiments.config import AggregationConfig, JobConfig
from experiments.programs import aggregation_program, forward_program
from experiments.run_folder import RunFolder, environment
from experiments.systems.aggregation import report
from experiments.systems.aggregation.outcome import BASELINES, ModeOutcome, RoundOutcome
from experiments.systems.aggregation.programmable import Hosts, ProgrammableChoice, choose_programmable
from hosts.torch_hook.torch_extra import require_torch
from switch.build import compiler
from switch.errors import UserError
from topo.graph import Topology
from topo.namespaces import require_root
from topo.registry import parse_topology
from topo.sandbox import run_in_sandbox
from topo.size import announce

if TYPE_CHECKING:
    from experiments.testbed import Testbed
    from experiments.training_run import Training

PARAMETER_SERVER = "parameter server"
IN_NETWORK = "in-network"


def run_aggregation(config: AggregationConfig) -> int:
    """Run the experiment and leave table, figure and data in config.output.

    Exit status 0; 1 if weights differ from the single-process reference or counters disagree. UserError for what
    the user can put right.
    """
    topology = parse_topology(config.topology, config.link_model)
    announce(topology)
    choose_programmable(topology, hosts_of_jobs(config, topology), config.planner_options)
    slots_of_a_job(config)
    if "gloo" in config.baselines:
        require_torch("--baselines gloo")
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
    folder.finish()
    console = Console()
    jobs = report.by_job(outcomes)
    for of_job in jobs:
        console.print(report.table(of_job, len(jobs)))
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


def hosts_of_jobs(config: JobConfig, topology: Topology) -> list[Hosts]:
    from controller.planning.hosts import choose_hosts_of_jobs

    return choose_hosts_of_jobs(topology, config.jobs, config.workers)


def slots_of_a_job(config: JobConfig) -> dict[str, Any]:
    """The part of a request that is about slots."""
    if config.slot_policy == "dynamic":
        return {"slot_policy": "dynamic"}
    if config.slots < config.jobs:
        raise UserError(
            f"{config.jobs} jobs cannot have a static share each of {config.slots} slots: allow more --slots"
        )
    return {"slot_policy": "static", "slots": config.slots // config.jobs}


def make_testbed(config: JobConfig, topology: Topology, choice: ProgrammableChoice, folder: RunFolder) -> Testbed:
    """The network of the experiment, not yet up."""
    from experiments.testbed import Testbed

    return Testbed(
        topology,
        aggregation_program(config.lanes, config.switch, config.slots),
        folder.logs,
        switch_kind=config.switch,
        links=config.links,
        seed=config.seed,
        slots=config.slots,
        legacy={} if config.legacy == "none" else choice.legacy(topology, config.legacy),
        forward_program=forward_program(config.switch) if config.legacy == "p4" else None,
        congestion_packets=config.congestion_packets,
    )


def make_trainings(
    config: AggregationConfig, hosts: Sequence[Hosts], requests: Sequence[Mapping[str, Any]]
) -> list[Training]:
    """The experiment's jobs. Each has a seed of its own."""
    from experiments.training_run import Training
    from hosts.learning.reference import reference
    from hosts.learning.settings import TrainingSettings

    trainings = []
    for place, ((workers, server), request) in enumerate(zip(hosts, requests, strict=True)):
        settings = TrainingSettings(
            hidden_units=config.hidden_units,
            rounds=config.rounds,
            batch_samples=config.batch_samples,
            seed=config.seed + place,
        )
        expected = list(reference(settings, len(workers), config.lanes))
        trainings.append(Training(workers, server, settings, expected, {**request, **slots_of_a_job(config)}))
    return trainings


def _measure(config: AggregationConfig, folder: RunFolder) -> list[ModeOutcome]:
    from experiments.agents import Agents
    from experiments.systems.aggregation.agents import MODULE
    from experiments.training_run import run_trainings

    topology = parse_topology(config.topology, config.link_model)
    hosts = hosts_of_jobs(config, topology)
    choice = choose_programmable(topology, hosts, config.planner_options)
    with _progress() as progress:
        setting_up = progress.add_task(f"setting up {config.topology}", total=None, note="")
        testbed = make_testbed(config, topology, choice, folder)
        outcomes = []
        with Agents(folder.logs, testbed.network, preload=[MODULE]) as agents, testbed:
            trainings = make_trainings(config, hosts, choice.requests)
            progress.remove_task(setting_up)
            for mode in (PARAMETER_SERVER, IN_NETWORK, *config.baselines):
                tasks = [
                    progress.add_task(
                        f"{mode}, job {place + 1}" if config.jobs > 1 else mode, total=config.rounds, note=""
                    )
                    for place in range(config.jobs)
                ]

                def on_round(place: int, outcome: RoundOutcome, tasks: Sequence[TaskID] = tasks) -> None:
                    note = f"{1e3 * outcome.round_time_s:6.1f} ms, accuracy {100 * outcome.accuracy:5.2f} %"
                    progress.update(tasks[place], completed=outcome.round + 1, note=note)

                outcomes += run_trainings(
                    testbed,
                    agents,
                    mode=mode,
                    trainings=[_in_mode(training, mode) for training in trainings],
                    config=config,
                    on_round=on_round,
                )
    return outcomes


def _in_mode(training: Training, mode: str) -> Training:
    if mode == IN_NETWORK:
        return training
    exchange: Any = mode if mode in BASELINES else "server"
    return replace(training, request={"placement": "none"}, exchange=exchange)


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
    from experiments.systems.aggregation.figure import draw

    folder.write_rows(
        "rounds.csv",
        [{"mode": o.mode, "job": o.job, **asdict(row)} for o in outcomes for row in o.per_round],
    )
    folder.write_rows("hosts.csv", [row for o in outcomes for row in accounting.rows(o.mode, o.job, o.accounts)])
    folder.write_rows("summary.csv", report.summary_rows(outcomes))
    jobs = report.by_job(outcomes)
    for of_job in jobs:
        draw(of_job, folder.path / ("figure" if len(jobs) == 1 else f"figure-job-{of_job[0].job}"))


def _failures(outcomes: Sequence[ModeOutcome]) -> list[str]:
    """What makes the run worthless; at most a few lines of each kind."""
    lines = []
    for outcome in outcomes:
        found = [*outcome.mismatches, *accounting.disagreements(outcome.accounts)]
        where = outcome.mode if len(report.by_job(outcomes)) == 1 else f"{outcome.mode}, job {outcome.job}"
        lines += [f"{where}, {line}" for line in found[:5]]
        if len(found) > 5:
            lines.append(f"{where}, and {len(found) - 5} more")
    return lines
