"""Report of a single trial: a table of its phases side by side, a figure, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.modules import COMMAND
from gradbed.experiments.plotting.style import figure, save
from gradbed.experiments.systems.aggregation.phase import IN_NETWORK, PARAMETER_SERVER
from gradbed.experiments.tables.console import FittedTable
from gradbed.experiments.tables.metric import time_text

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults


# ---- The figure ----


Row = Mapping[str, Any]

COLOURS = {PARAMETER_SERVER: "#b35806", IN_NETWORK: "#2166ac", "ring": "#1b7837", "gloo": "#762a83"}
STYLES = {PARAMETER_SERVER: "-", IN_NETWORK: ":", "ring": "--", "gloo": "-."}


def draw(summary: Sequence[Row], rounds: Sequence[Row], path: Path) -> list[Path]:
    """Draw a figure of one job and write it in every format.

    Its panels are the bytes into the server's link, round times, accuracy if the job trained, and with several phases
    the bytes on all links.

    Args:
        summary: a row for each phase.
        rounds: a row for each round.
        path: file name without its suffix.
    """
    served = [row for row in summary if row["has_server"]]
    panels = [
        *([_draw_traffic] if served else []),
        _draw_times,
        *([_draw_accuracy] if all(row["accuracy"] is not None for row in summary) else []),
        *([_draw_all_links] if len(served) < len(summary) else []),
    ]
    with figure(3.5, 3.2, columns=len(panels)) as (made, axes):
        for panel, own in zip(panels, axes, strict=True):
            panel(own, summary, rounds)
        return save(made, path)


def _draw_traffic(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    served = [row for row in summary if row["has_server"]]
    kilobytes = [row["server_in_gradient_bytes"] / row["rounds"] / 1e3 for row in served]
    names = [row["phase"] for row in served]
    axes.bar_label(axes.bar(names, kilobytes, color=[COLOURS[name] for name in names], width=0.6), fmt="%.1f")
    if len(served) > 1:
        workers = served[0]["workers"]
        axes.axhline(kilobytes[0] / workers, color="black", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"1/{workers} of the server alone", (1, kilobytes[0] / workers), xytext=(0, 14),
            textcoords="offset points", ha="center", fontsize=8,
        )  # fmt: skip
    axes.set_ylabel("gradient bytes into the\nserver's link (kB per round)")


def _draw_times(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    for phase in summary:
        name = phase["phase"]
        values = sorted(1e3 * row["round_time_s"] for row in rounds if row["phase"] == name)
        share = [(i + 1) / len(values) for i in range(len(values))]
        axes.step(values, share, where="post", color=COLOURS[name], label=name)
        if phase["least_round_time_s"]:
            axes.axvline(1e3 * phase["least_round_time_s"], color=COLOURS[name], linewidth=0.8, linestyle="--")
    axes.set_xlabel("round time (ms);\ndashed: lower bound")
    axes.set_ylabel("CDF")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.legend(loc="lower right")


def _draw_accuracy(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    # Sums are exact, so all phases give the same weights in every round: one line lies on the other.
    for name in (row["phase"] for row in summary):
        own = [row for row in rounds if row["phase"] == name]
        axes.plot(
            [row["round"] + 1 for row in own], [100 * row["accuracy"] for row in own],
            STYLES[name], color=COLOURS[name], label=name, linewidth=1.2 if STYLES[name] == "-" else 2.4,
        )  # fmt: skip
    axes.set_xlabel("round")
    axes.set_ylabel("test accuracy (%)")
    axes.legend(loc="lower right")


def _draw_all_links(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    kilobytes = [row["byte_hops"] / row["rounds"] / 1e3 for row in summary]
    names = [row["phase"] for row in summary]
    bars = axes.bar([name.replace(" ", "\n") for name in names], kilobytes, color=[COLOURS[name] for name in names])
    axes.bar_label(bars, fmt="%.0f")
    axes.set_ylabel("bytes on all links (kB per round)")


# ---- The report ----


TROUBLES = {
    "collision": "met another fragment of the job in the slot",
    "contention": "met another job in the slot",
    "exhaustion": "found all slots held",
    "overflow": "would have left int32",
}
"""Events that keep a switch from summing a gradient, with their rows of the table; shown where they occur."""


def present(results: StudyResults, console: Console) -> None:
    """Print tables on the console and three closing lines; leave figures in the run's folder."""
    (trial,) = results.trials
    summary, rounds = trial.table("summary"), trial.table("rounds")
    configuration = results.configurations()[trial.digest]
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
    for other in results.other_clock:
        console.print(beside(by_job(other.table("summary"))[0], other.row["clock"]))
    for line in closing(trial.row, jobs[0], figures[0], bool(results.other_clock)):
        console.print(line)


def by_job(summary: Sequence[Row]) -> list[list[Row]]:
    """Return the phases of each job, in their order."""
    jobs = dict.fromkeys(row["job"] for row in summary)
    return [[row for row in summary if row["job"] == job] for job in jobs]


def closing(row: Row, of_job: Sequence[Row], figure: Path, beside: bool) -> list[str]:
    """Return the closing lines: what the table means, where the figure is, and what to try next.

    Times that the host may have distorted are not interpreted.

    Args:
        row: of the table of trials.
        beside: whether the trial's result on the other clock has been shown.
    """
    trusted = row["verdict"] in ("simulated", "valid")
    clock = " --clock virtual" if row["verdict"] == "simulated" else ""  # who has no root needs none next time either
    what_next = f"{COMMAND} run aggregation{clock} --programmable 4 --baselines parameter-server,ring"
    if not trusted and not beside:
        what_next = f"{COMMAND} run aggregation --clock virtual   (the network's times, on any machine)"
    return [f"means: {meaning(of_job, trusted)}", f"figure: {figure}", f"next: {what_next}"]


def meaning(of_job: Sequence[Row], trusted: bool) -> str:
    """Return what the phases mean in one sentence, as far as the times are valid."""
    phases = {row["phase"]: row for row in of_job}
    alone, in_network = phases.get(PARAMETER_SERVER), phases.get(IN_NETWORK)
    if not (alone and in_network and in_network["server_in_gradient_bytes"]):
        times = ", ".join(f"{row['phase']} {time_text(row['median_round_time_s'])}" for row in of_job)
        return f"a round takes: {times}" + (
            "." if trusted else "; these times are not valid: the host was overloaded."
        )
    fewer = alone["server_in_gradient_bytes"] / in_network["server_in_gradient_bytes"]
    carried = f"the server's link carries 1/{fewer:.3g} of the gradient bytes"
    if not trusted:
        return f"{carried}. Round times are not valid: the host was overloaded; byte counts are exact."
    return f"{carried}, and {speed(of_job)}."


def speed(of_job: Sequence[Row]) -> str:
    """Return how the round times compare, in words."""
    phases = {row["phase"]: row["median_round_time_s"] for row in of_job}
    quicker = phases[PARAMETER_SERVER] / phases[IN_NETWORK]
    if 0.95 < quicker < 1.05:
        return "a round takes as long"
    return f"a round takes {1 / quicker:.0%} of the time"


def beside(repeated: Sequence[Row], clock: str) -> str:
    """Return a line with the round times of the same trial on the other clock."""
    rounds = repeated[0]["rounds"]
    name = f"{'simulated' if clock == 'virtual' else 'real'} time ({rounds} round{'s' if rounds != 1 else ''})"
    times = ", ".join(f"{row['phase']} {time_text(row['median_round_time_s'])}" for row in repeated)
    compared = {PARAMETER_SERVER, IN_NETWORK} <= {row["phase"] for row in repeated}
    return f"same experiment in {name}: {times}{f': {speed(repeated)}' if compared else ''}"


def script_lines(summary: Sequence[Row], rounds: Sequence[Row]) -> list[str]:
    """Return lines about the gradients of a PyTorch script."""
    if not summary:
        return ["the script registered no model, so nothing went through the switches"]
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


def table(of_job: Sequence[Row], jobs: int = 1) -> FittedTable:
    """Return a table of a job's phases side by side, with the ratio of the second to the first, and the ideal
    ratio.
    """
    first = of_job[0]
    which = f"job {first['job']} of {jobs}: " if jobs > 1 else ""
    result = FittedTable(
        title=f"{which}{first['workers']} workers, {first['rounds']} rounds; bytes and packets are those of one"
    )
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
        add_per_round("gradients into the server", "server_in_gradient_bytes", "B")
        add_per_round("gradient packets into it", "server_in_gradient_packets", "")
        add_per_round("ACKs out of the server", "server_out_acknowledgement_bytes", "B")
    bytes_per_round = [row["byte_hops"] / row["rounds"] for row in of_job]
    add("bytes on all links", bytes_per_round, [f"{value:,.0f} B" for value in bytes_per_round])
    times_s = [row["median_round_time_s"] for row in of_job]
    add("round time, median", times_s, [time_text(value) for value in times_s])
    least_s = [row["least_round_time_s"] for row in served if row["least_round_time_s"]]
    if least_s and len(least_s) == len(served):
        add("round time, lower bound", least_s, [time_text(value) for value in least_s])
    if all(row["resends"] is not None for row in of_job):
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
