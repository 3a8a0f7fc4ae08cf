"""What a run of one point shows: a table of its phases side by side, a figure, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from experiments.systems.aggregation.figure import draw
from experiments.systems.aggregation.phase import IN_NETWORK, PARAMETER_SERVER
from experiments.units import time_text

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.study.results import StudyResults

Row = Mapping[str, Any]

TROUBLES = {
    "collision": "met another fragment of the job in the slot",
    "contention": "met another job in the slot",
    "exhaustion": "found all slots held",
    "overflow": "would have left int32",
}
"""Events that keep a switch from summing a gradient, in words of the table; shown where they occur."""


def present(results: StudyResults, console: Console) -> None:
    """Tables on the console, figures in the run's folder, and three closing lines."""
    summary, rounds = results.table("summary"), results.table("rounds")
    (configuration,) = results.configurations().values()
    if configuration["workload"]["kind"] == "script":
        for line in script_lines(summary, rounds):
            console.print(f"gradbed: {line}")
        return
    jobs = by_job(summary)
    figures = []
    for of_job in jobs:
        number = of_job[0]["job"]
        console.print(table(of_job, len(jobs)))
        own = [row for row in rounds if row["job"] == number]
        name = "figure" if len(jobs) == 1 else f"figure-job-{number}"
        figures += draw(of_job, own, results.folder / name)
    for line in meaning(results, jobs[0]):
        console.print(line)
    console.print(f"figure: {figures[0]}")


def by_job(summary: Sequence[Row]) -> list[list[Row]]:
    """The phases of each job, in their order."""
    jobs = dict.fromkeys(row["job"] for row in summary)
    return [[row for row in summary if row["job"] == job] for job in jobs]


def meaning(results: StudyResults, of_job: Sequence[Row]) -> list[str]:
    """What the table says, in one sentence, and whether the machine had a part in it."""
    phases = {row["phase"]: row for row in of_job}
    alone, in_network = phases.get(PARAMETER_SERVER), phases.get(IN_NETWORK)
    lines = []
    if alone and in_network and in_network["server_in_gradient_bytes"]:
        fewer = alone["server_in_gradient_bytes"] / in_network["server_in_gradient_bytes"]
        faster = alone["median_round_time_s"] / in_network["median_round_time_s"]
        speed = f"a round takes 1/{faster:.2f} of the time" if faster > 1.05 else "a round takes as long"
        lines.append(
            f"The switches summed on the way: the server's link carries 1/{fewer:.3g} of the gradient bytes, "
            f"and {speed}."
        )
    return lines


def script_lines(summary: Sequence[Row], rounds: Sequence[Row]) -> list[str]:
    """What the gradients of a script did."""
    if not summary:
        return ["the script made no backward pass with a registered model, so nothing went through the switches"]
    (row,) = summary
    workers, passes = row["workers"], row["rounds"]
    lines = [
        f"{passes} gradients of {row['values']} values summed over {workers} workers, "
        f"{time_text(row['median_round_time_s'])} in the median"
    ]
    if row["has_server"]:
        into = row["server_in_gradient_bytes"] / passes
        lines.append(
            f"{into:.0f} B of gradients into the server's link for each, "
            f"{into / (workers * row['gradient_bytes']):.4f} of what {workers} workers sent"
        )
    if clipped := sum(each["clipped"] for each in rounds):
        lines.append(f"{clipped} values did not fit their tensor's scale, or were no numbers, and were clipped")
    return lines


def table(of_job: Sequence[Row], jobs: int = 1) -> Table:
    """A job's phases side by side, with the ratio of the second to the first, and the ideal one."""
    first = of_job[0]
    which = f"job {first['job']} of {jobs}: " if jobs > 1 else ""
    result = Table(title=f"{which}{first['workers']} workers, {first['rounds']} rounds")
    result.add_column("")
    for row in of_job:
        result.add_column(row["phase"], justify="right")
    compared = len(of_job) > 1
    if compared:
        result.add_column("ratio", justify="right")
        result.add_column("ideal", justify="right")
    # Baselines without a server come last.
    served = [row for row in of_job if row["has_server"]]

    def add(name: str, values: Sequence[float], cells: Sequence[str], ideal: str = "") -> None:
        more = ["-"] * (len(of_job) - len(cells))
        quotient = f"{values[1] / values[0]:.4f}" if len(values) > 1 and values[0] else "-"
        result.add_row(name, *cells, *more, *([quotient, ideal] if compared else []))

    def add_per_round(name: str, column: str, unit: str) -> None:
        values = [row[column] / row["rounds"] for row in served]
        add(name, values, [f"{value:,.1f} {unit}".strip() for value in values], f"{1 / first['workers']:.4f}")

    if served:
        add_per_round("gradients into the server's link, a round", "server_in_gradient_bytes", "B")
        add_per_round("gradient packets into it, a round", "server_in_gradient_packets", "")
        add_per_round("ACKs out of the server's link, a round", "server_out_acknowledgement_bytes", "B")
    bytes_per_round = [row["byte_hops"] / row["rounds"] for row in of_job]
    add("bytes on all links, a round", bytes_per_round, [f"{value:,.0f} B" for value in bytes_per_round])
    times_s = [row["median_round_time_s"] for row in of_job]
    add("round time, median", times_s, [time_text(value) for value in times_s])
    least_s = [row["least_round_time_s"] for row in served if row["least_round_time_s"]]
    if least_s and len(least_s) == len(served):
        add("least that the links allow", least_s, [time_text(value) for value in least_s])
    add("gradient packets resent", *_whole([row["resends"] for row in of_job]))
    if any(row["direct_copies"] for row in of_job):
        add("gradients sent alone on request", *_whole([row["direct_copies"] for row in served]))
    for name, words in TROUBLES.items():
        if any(row[f"slots_{name}"] for row in of_job):
            add(words, *_whole([row[f"slots_{name}"] for row in served]))
    if all(row["accuracy"] is not None for row in of_job):
        cells = [f"{100 * row['accuracy']:.2f} %" for row in of_job]
        result.add_row("test accuracy", *cells, *(["", ""] if compared else []))
    return result


def _whole(values: Sequence[int]) -> tuple[Sequence[int], list[str]]:
    return values, [f"{value:,}" for value in values]
