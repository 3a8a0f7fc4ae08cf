"""The compression system: gradients that adapt to the rate that the network has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.system import LINKS_FIGURE, System, SystemOptions, SystemReport
from gradbed.experiments.systems.compression import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.compression.configuration import CompressionConfiguration, CompressionScriptWorkload
from gradbed.experiments.systems.compression.metrics import METRICS
from gradbed.experiments.systems.compression.trial import CompressionTrial
from gradbed.experiments.tables.metric import Metric, time_text
from gradbed.experiments.torch_scripts import check_script
from gradbed.hosts.compressors.methods import compressor

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults


# ---- What a run of a PyTorch script shows ----


Row = Mapping[str, Any]

VALUE_BYTES = 4


def script_lines(trial: Row, rounds: Sequence[Row]) -> list[str]:
    """Return lines about the gradients of a PyTorch script.

    Args:
        point: row of the table of trials.
        rounds: rows of the table "rounds".
    """
    if not rounds:
        return ["the script registered no model, so nothing went through the switches"]
    values = rounds[0]["values"]
    lines = [
        f"{len(rounds)} gradients of {values} values summed, {time_text(trial['iteration_time_s'])} in the median",
        f"{trial['wire_bytes']:.0f} B of a worker's gradient sent, headers and all, "
        f"{trial['wire_bytes'] / (VALUE_BYTES * values):.4f} of its {VALUE_BYTES * values} B",
    ]
    if clipped := sum(each["clipped"] for each in rounds):
        lines.append(f"{clipped} values did not fit, or were no numbers, and were clipped")
    return lines


# ---- The system ----


class CompressionSystem(System[CompressionConfiguration]):
    """Train with gradients that are compressed as far as the network asks for it, sent at a paced rate."""

    name = "compression"
    configuration = CompressionConfiguration
    service = "gradbed.controller.systems.compression.service:CompressionService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={
            "clock": "virtual",
            "topology.kind": "star:9",
            "workload.kind": "training",
            "workload.rounds": 60,
        },
        script_defaults={
            "workload.kind": "script",
            "workload.workers": 4,
        },
    )
    report = SystemReport(
        main_metrics=("iteration_time_s", "ratio", "queue_drops", "accuracy"),
        assurance=(
            "Every result is the exact sum of the compressed gradients that the workers sent, error feedback holds "
            "the rest, and host and link counters agree."
        ),
        figures={
            "rounds": {
                "kind": "course",
                "x": "seed",
                "y": "iteration_time_s",
                "course": {"table": "rounds", "step": "round", "y": "iteration_time_s", "y_times": 1e3},
                "x_label": "round",
                "y_label": "iteration time (ms)",
                "panels": [{}, {"y": "ratio", "course.y": "ratio", "course.y_times": 1.0, "y_label": "share sent"}],
            },
            **LINKS_FIGURE,
        },
        colours={"none": 0, "source": 1, "as published": 1, "corrected": 2},
    )

    def check(self, configuration: CompressionConfiguration) -> None:
        if isinstance(configuration.workload, CompressionScriptWorkload):
            check_script(configuration, configuration.workload)
        topology = configuration.topology.build(Scale())
        workers = configuration.workload.workers
        others = ["a server", *(["a sender of competing traffic"] if configuration.background.load else [])]
        hosts = workers + len(others)
        if hosts > len(topology.hosts):
            words = " and ".join([f"{workers} workers", *others])
            raise ValueError(f"{words} need {hosts} hosts, {topology.name} has {len(topology.hosts)}")
        if any(link.model.rate_bps is None for link in topology.host_links):
            if configuration.transport.pacing != "none":
                raise UserError(
                    "--pacing: the server's link has no rate to pace by: give --rate-mbps, or --pacing none"
                )
            if configuration.background.load:
                raise UserError(
                    "--background-load: the server's link has no rate to take a share of: give --rate-mbps"
                )
        if configuration.transport.protocol == "tcp":
            _check_tcp(configuration)
        compress, rule = configuration.compression.compress, configuration.ratio.rule
        if rule != "none" and not compressor(compress).can_be_cut:
            raise UserError(f"--ratio {rule}: a part of what {compress} makes is worth nothing: use --ratio none")

    def present(self, results: StudyResults, console: Console) -> None:
        (trial,) = results.trials
        if results.configurations()[trial.digest]["workload"]["kind"] != "script":
            super().present(results, console)
            return
        for line in script_lines(trial.row, trial.table("rounds")):
            console.print(f"gradbed: {line}")

    def trial(self, task: TrialTask[CompressionConfiguration]) -> CompressionTrial:
        return CompressionTrial(task)


def _check_tcp(configuration: CompressionConfiguration) -> None:
    """Raise UserError for what does not go with the kernel's TCP."""
    REAL_CLOCK.require(configuration.clock == "real", "--transport tcp")
    if configuration.transport.pacing != "none" or configuration.ratio.rule != "none":
        raise UserError("--transport tcp: the kernel chooses the rate: give --pacing none and --ratio none")
