"""The workload system: a user's P4 program under traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradbed.common.capabilities import GRADBED_SWITCHES
from gradbed.experiments.custom_program import SERVICE
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.system import LINKS_FIGURE, SwitchCapabilities, System, SystemOptions, SystemReport
from gradbed.experiments.systems.workload.checks import check_subjects
from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration, WorkloadShorthands
from gradbed.experiments.systems.workload.metrics import METRICS
from gradbed.experiments.systems.workload.report import closing
from gradbed.experiments.systems.workload.trial import WorkloadTrial, background_of, network_of, traffic_of
from gradbed.experiments.tables.metric import Metric, metric_table
from gradbed.experiments.traffic.connections import check_faults_of_traffic, check_transport
from gradbed.experiments.traffic.packet_options import packet_choice

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults

MISSED_SHOWN = 20


class WorkloadSystem(System[WorkloadConfiguration]):
    """Put a P4 program of your own on every switch of a network, and traffic through it."""

    name = "workload"
    configuration = WorkloadConfiguration
    service = SERVICE
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        shorthands=WorkloadShorthands,
    )
    switches = SwitchCapabilities(
        run_topology_programs=True,
    )
    report = SystemReport(
        main_metrics=("sent_packets", "loss", "throughput_bps", "mean_us", "p99_us", "queue_drops"),
        assurance="Every packet is accounted for: host, switch and link counters agree.",
        figures={
            "latency": {
                "kind": "distribution",
                "x": "latency_us",
                "table": "latency",
                "weight": "packets",
                "x_from": 0.0,
            },
            **LINKS_FIGURE,
        },
    )

    def check(self, configuration: WorkloadConfiguration) -> None:
        program = configuration.program
        for option, is_asked in (("--coverage", program.coverage), ("--trace", program.trace is not None)):
            GRADBED_SWITCHES.require(program.model == "gradbed" or not is_asked, option)
        check_subjects(configuration.expect, METRICS)
        setup = network_of(configuration, Scale())
        check_transport(configuration.traffic, configuration.clock)
        background_of(configuration, setup.topology, Scale(), seed=1)
        traffic_of(configuration, setup.topology, Scale(), seed=1)
        configuration.samples.order(setup.topology, Scale())
        if configuration.program.trace is not None:
            packet_choice(configuration.program.trace, setup.topology)
        check_faults_of_traffic(configuration.faults)

    def trial(self, task: TrialTask[WorkloadConfiguration]) -> WorkloadTrial:
        return WorkloadTrial(task)

    def closing(self, results: StudyResults) -> str:
        return closing(results)

    def present(self, results: StudyResults, console: Console) -> None:
        alone = len(results.trials) == 1
        for trial in results.trials:
            if alone:
                model = results.model_of(trial)
                shown = {
                    name: metric
                    for name, metric in self.metrics.items()
                    if trial.row[name] is not None or metric.is_untold(model)
                }
                console.print(metric_table("workload", shown, trial.row, model))
            elif any(trial.table(name) for name in ("trace", "coverage", "notes")):
                console.print(trial.place_text.rstrip(": "), style="bold")
            for row in trial.table("trace"):
                console.print(f"hop {row['hop']}: {row['switch']}, {row['time_us']} us", style="bold")
                console.print(row["text"])
            _print_unreached(trial.table("coverage"), console)
            for row in trial.table("notes"):
                console.print(f"note: {row['note']}", style="yellow")


def _print_unreached(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the coverage: fractions, and the first items that no packet reached."""
    categories: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        categories.setdefault(row["category"], []).append(row)
    for category, items in categories.items():
        reached = sum(row["hits"] > 0 for row in items)
        console.print(f"coverage: {reached} of {len(items)} {category}")
    missed = [row for row in rows if not row["hits"]]
    for row in missed[:MISSED_SHOWN]:
        place = f"{row['file']}:{row['line']}: " if row["file"] else ""
        console.print(f"not reached: {row['category']}: {place}{row['name']}", style="dim")
    if len(missed) > MISSED_SHOWN:
        console.print(f"... {len(missed) - MISSED_SHOWN} more in coverage.csv", style="dim")
