"""Figures of compression (docs/compression.md) that need more than lines, as figure kinds that studies name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from gradbed.experiments.plotting.series import colour_numbers, draw_all, draw_companion, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.hosts.systems.compression.rate import corrected_ratio, source_ratio

Row = Mapping[str, Any]

PACING = {"none": "unpaced", "even": "B1/N", "active": "B1/active", "aimd": "AIMD"}


def variant(row: Row) -> str:
    """Return how a trial reacts to congestion, from its pacing, rule and compressor."""
    pacing, rule, compress = row["transport.pacing"], row["ratio.rule"], row["compression.compress"]
    if not row["faults"]:
        return f"undisturbed, {PACING[pacing]}"
    if row.get("transport.protocol") == "tcp":
        return "kernel TCP, a sum for each worker"
    if compress != "none":
        return f"{compress}, {PACING[pacing]}"
    if rule == "none":
        return "neither" if pacing == "none" else f"pacing alone ({PACING[pacing]})"
    if rule == "source":
        return f"as published, {PACING[pacing]}"
    return "compression alone" if pacing == "none" else f"corrected, {PACING[pacing]}"


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


# ---- Figure 1: iteration time, and what a worker sent for it, against the number of workers ----


UNDISTURBED = "undisturbed, B1/N"
GROUPS = (
    (UNDISTURBED, "neither", "pacing alone (B1/N)", "compression alone", "corrected, B1/N"),
    (UNDISTURBED, "corrected, B1/N", "corrected, AIMD", "as published, B1/N", "topk:0.1, B1/N", "topk:0.01, B1/N"),
)
"""Variants of each row of panels: what pacing and compression contribute, and ways to choose the ratio."""
VARIANTS = {
    name: number
    for number, name in enumerate(
        (
            "neither",
            "as published, B1/N",
            "corrected, B1/N",
            "pacing alone (B1/N)",
            "corrected, AIMD",
            "compression alone",
            "topk:0.1, B1/N",
            "topk:0.01, B1/N",
        )
    )
}
"""Numbers of colours."""


@figure_kind("compression-workers", columns=2, rows=2, height_in=2.7)
def draw_workers(sheet: Sheet) -> None:
    """Draw figure 1; the undisturbed network is the black line of every panel."""
    axes, results = sheet.axes, sheet.results
    workers = itemgetter("workload.workers")
    times = results.derived_series(workers, lambda row: 1e3 * row["iteration_time_s"], variant)
    sent = results.derived_series(workers, lambda row: 1e-3 * row["wire_bytes"], variant)
    sent = sheet.on_log_axes(sent, y=True)
    counts = sorted({point.x for points in times.values() for point in points})
    for row, group in enumerate(GROUPS):
        others = [name for name in times if name not in GROUPS[0] + GROUPS[1]] if row else []
        for panel, series in zip(axes[2 * row : 2 * row + 2], (times, sent), strict=True):
            shown = {name: series[name] for name in (*group[1:], *others) if name in series}
            draw_all(panel, shown, numbers=colour_numbers(shown, VARIANTS))
            if UNDISTURBED in series:
                draw_companion(panel, series[UNDISTURBED], label=UNDISTURBED, number=None, dashes="-")
            panel.set_xticks(counts, [str(count) for count in counts])
            panel.set(xlabel="workers" if row else "")
        axes[2 * row].set(ylim=(0, None), ylabel="median iteration (ms)")
        axes[2 * row + 1].set(yscale="log", ylabel="sent per worker (kB)")
    explain_marks(axes[0], verdicts(times))
    legend_below(axes, 3)


# ---- Step ----
#
# Figure 2: rate, ratio and queue over time, of the first repetition; a row for each thing that happens.


WORKER = "worker 0"
RULES_OVER_TIME = {
    "none": "none",
    "source": "as published",
    "iteration": "corrected, R0 of the iteration",
    "run": "corrected, R0 of the run",
}


def name_of(row: Row) -> str:
    """Return the series of a trial in figure 2."""
    rule = row["ratio.rule"]
    return RULES_OVER_TIME[row["ratio.initial_rate"] if rule == "corrected" else rule]


def what_happens(row: Row) -> str:
    return "competing traffic" if row["background.load"] else "half of the link rate"


def scenes(results: StudyResults) -> dict[str, list[TrialRecord]]:
    """Return the trials of the first repetition by what happens to the network."""
    found: dict[str, list[TrialRecord]] = {}
    for trial in results.trials:
        if trial.repetition == 0:
            found.setdefault(what_happens(trial.row), []).append(trial)
    return found


@figure_kind("compression-step", columns=3, rows=lambda results, _: len(scenes(results)), width_in=4.0, height_in=3.0)
def draw_step(sheet: Sheet) -> str:
    """Draw figure 2."""
    axes, found = sheet.axes, scenes(sheet.results)
    names = list(dict.fromkeys(name_of(trial.row) for trials in found.values() for trial in trials))
    numbers = sheet.numbers(names)
    for row, (scene, trials) in enumerate(found.items()):
        of_scene = axes[3 * row : 3 * row + 3]
        for trial in trials:
            name = name_of(trial.row)
            _draw_trial(of_scene, trial, name, colour(numbers[name]))
        for panel, x, y in zip(
            of_scene,
            ("time (s)", "iteration", "time (s)"),
            (f"rate of {WORKER} (Mbit/s)", "mean ratio of workers", "server link queue (packets)"),
            strict=True,
        ):
            panel.set_title(scene, fontsize=9)
            panel.set(xlabel=x, ylabel=y, ylim=(0, None))
    legend_below(axes[0], 4)
    return sheet.results.heading_of_first


def _draw_trial(axes: Sequence[Any], trial: TrialRecord, name: str, of_it: str) -> None:
    rates = [row for row in trial.table("rates") if row["worker"] == WORKER]
    rounds, queues = trial.table("rounds"), trial.table("link_samples")
    style = {"color": of_it, "linewidth": 1.1}
    axes[0].plot([r["time_s"] for r in rates], [r["rate_bps"] / 1e6 for r in rates], **style, label=name)
    axes[1].plot([r["round"] + 1 for r in rounds], [r["ratio"] for r in rounds], **style, marker=".")
    axes[2].plot([r["time_us"] / 1e6 for r in queues], [r["queue_packets"] for r in queues], **style)


# ---- Ratio ----
#
# Figure 5: the ratio that each rule chooses against the rate that is left, beside its formula.


RULE_NAMES = {"none": "none", "source": "as published", "corrected": "corrected"}
SENT, SUM_SHARE = 0.15, 1 / 8
"""Fractions of the gradient for the curves of the formulas.

They are what is sent when the rule decides, and the sum's share of it with eight workers.
"""


RULES: dict[str, Callable[..., float]] = {
    "source": source_ratio,
    "corrected": functools.partial(corrected_ratio, sum_share=SUM_SHARE),
}


def rate_left(row: Row) -> float:
    """Return the fraction of the server's link rate that the first fault leaves; both rates are nominal."""
    rate_bps: float = 1e6 * row["faults"][0]["change"]["rate_mbps"]
    return rate_bps / float(row["link_rate_bps"])


@figure_kind("compression-ratio")
def draw_ratio(sheet: Sheet) -> None:
    """Draw figure 5."""
    [axes] = sheet.axes
    series = sheet.results.derived_series(rate_left, itemgetter("ratio"), itemgetter("ratio.rule"))
    numbers = sheet.numbers(series)
    draw_all(axes, series, names=RULE_NAMES, numbers=numbers)
    rates = [n / 50 for n in range(1, 51)]
    for name in series:
        if name in RULES:
            ratios = [RULES[name](SENT, 1.0, 1.0, rate) for rate in rates]
            axes.plot(rates, ratios, ":", color=colour(numbers[name]), linewidth=1)
    axes.plot([], [], ":", color="grey", label=f"formula, {100 * SENT:g} % sent before")
    axes.set(
        xlabel="remaining rate / initial rate",
        ylabel="ratio (bytes sent / gradient bytes)",
        ylim=(0, None),
    )
    explain_marks(axes, verdicts(series))
    axes.legend()
