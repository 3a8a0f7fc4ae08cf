"""Figures of the shuffle (docs/shuffle.md) that need more than lines, and the published curves beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.experiments.plotting.series import draw_all, draw_companion, draw_series, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.tables.files import Row

# ---- Published curves ----
#
# Values are packets for each sample of the data set, where each packet reaches all its receivers at once, of K
# workers that each store a share of all samples. The new samples of each worker are any (Lee and others), or all
# different from its old ones (Attia and Tandon, the worst case).


def uncoded(workers: int, share: float) -> float:
    """Return 1 - share: the probability that a worker does not store a sample that it needs."""
    return 1 - share


def lee_average(workers: int, share: float) -> float:
    """Return the average rate of coded shuffling with a master.

    A sample is stored by the worker that used it last, and by each other one with the same probability; the sum of a
    set of samples goes to workers each of which has exactly all others of the set.

    K. Lee, M. Lam, R. Pedarsani, D. Papailiopoulos, K. Ramchandran, "Speeding Up Distributed Machine Learning Using
    Codes", IEEE Transactions on Information Theory 64(3), 2018, coded shuffling rate, doi:10.1109/TIT.2017.2736066.
    """
    p = (share - 1 / workers) / (1 - 1 / workers)
    if p <= 0:
        return (workers - 1) / workers / 2
    left = 1 - p
    return (left ** (workers + 1) + (workers - 1) * p * left - left**2) / (workers * p) ** 2


def attia_tandon_worst(workers: int, share: float) -> float:
    """Return the worst-case load with a master, with memory sharing between the scheme's points.

    Workers store parts of samples so that any demand can be served, and demand nothing that they have. The points are
    storage and load for i = 0..K parts.

    M. A. Attia, R. Tandon, "Near Optimal Coded Data Shuffling for Distributed Learning", IEEE Transactions on
    Information Theory 65(11), 2019, the coded scheme's storage and communication, arXiv:1801.01875.
    """
    return _between((workers * share - 1) * workers / (workers - 1), lambda i: (workers - i) / (workers * (i + 1)))


def coded_mapreduce(workers: int, share: float) -> float:
    """Return the load of Coded MapReduce, without a master, with memory sharing between whole r.

    Each sample is stored by r = K * share workers, every set of r alike, and a worker's packet serves r others.

    S. Li, M. A. Maddah-Ali, Q. Yu, A. S. Avestimehr, "A Fundamental Tradeoff Between Computation and Communication in
    Distributed Computing", IEEE Transactions on Information Theory 64(1), 2018, doi:10.1109/TIT.2017.2756959.
    """
    return _between(workers * share, lambda r: (1 - r / workers) / r)


def _between(place: float, at: Callable[[int], float]) -> float:
    """Interpolate linearly between whole places."""
    low = int(place + 1e-9)
    part = max(0.0, place - low)
    return at(low) if part < 1e-9 else (1 - part) * at(low) + part * at(low + 1)


CURVES: dict[str, Callable[[int, float], float]] = {
    "uncoded": uncoded,
    "Lee and others, a master, average": lee_average,
    "Attia, Tandon, a master, worst case": attia_tandon_worst,
    "Coded MapReduce, r workers store a sample": coded_mapreduce,
}


# ---- Hops ----
#
# Figure 1: hops of all schedulers against storage, with lower bounds, on each network.


BOUNDS = {
    ("packet_bound_hops", False): ("--", "packet lower bound"),
    ("cut_bound_hops", False): (":", "cut-set lower bound"),
    ("bound_hops", True): ("-.", "single-server lower bound"),
}
"""Style and label of each lower bound, by column and whether there is a master, which stores everything."""


def networks(results: StudyResults) -> list[str]:
    """Return the topology kinds, in the order of the study."""
    return list(dict.fromkeys(str(trial.row["topology.kind"]) for trial in results.trials))


def _storage(row: Row) -> float:
    return float(row["samples.storage"])


def _on(network: str, column: str, master: bool | None, row: Row) -> float | None:
    is_asked = master in (None, scheduler_named(str(row["shuffle.scheduler"])).needs_master)
    return float(row[column]) if is_asked and row["topology.kind"] == network else None


@figure_kind("shuffle-hops", columns=lambda results, _: len(networks(results)), width_in=3.6, height_in=4.2)
def draw_hops(sheet: Sheet) -> None:
    """Draw figure 1: hops."""
    axes, results, found = sheet.axes, sheet.results, networks(sheet.results)
    for at, network in zip(axes, found, strict=True):
        series = results.derived_series(
            _storage, partial(_on, network, sheet.section.y, None), lambda row: row["shuffle.scheduler"]
        )
        numbers = sheet.numbers(series)
        draw_all(at, series, numbers=numbers)
        for (column, master), (dashes, word) in BOUNDS.items():
            for trials in results.derived_series(
                _storage, partial(_on, network, column, master), lambda row: None
            ).values():
                masters = [numbers[name] for name in series if scheduler_named(str(name)).needs_master]
                own = masters[0] if master and masters else None
                draw_companion(at, trials, label=word, number=own, dashes=dashes)
        at.set(title=network, xlabel="storage fraction", xlim=(0, 1), ylim=(0, None))
    assert len(series) <= len(COLOURS), "each scheduler has a colour of its own"
    axes[0].set_ylabel("hops of all packets")
    legend_below(axes[-1], 2 * len(found))


# ---- Packets ----
#
# Figure 1, too: packets of all schedulers against storage, beside published curves, on the study's first network.


DASHES = (":", "-.", "--", (0, (5, 1, 1, 1, 1, 1)))


@figure_kind("shuffle-packets", width_in=6.4, height_in=4.4)
def draw_packets(sheet: Sheet) -> str:
    """Draw figure 1: packets."""
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    network = networks(results)[0]
    workers = next(p.row["shuffle.workers"] for p in results.trials if p.row["topology.kind"] == network)
    series = results.derived_series(
        lambda row: float(row[section.x]),
        lambda row: row[section.y] if row["topology.kind"] == network else None,
        lambda row: row["shuffle.scheduler"],
    )
    draw_all(axes, series, numbers=sheet.numbers(series))
    shares = np.linspace(1 / workers, 1, 200).tolist()
    for dashes, (name, curve) in zip(DASHES, CURVES.items(), strict=True):
        heights = [curve(workers, share) for share in shares]
        axes.plot(shares, heights, linestyle=dashes, color="black", linewidth=1, label=name)
    axes.set(
        xlabel="storage fraction",
        ylabel="packets / samples of the data set",
        xlim=(0, 1),
        ylim=(0, 1.05),
    )
    axes.legend(fontsize="small")
    return f"{workers} workers\n{results.heading}"


# ---- Figure 2: the time of a shuffle against storage, and as a part of what unicast takes ----


BASELINES = {"unicast-random": "-", "unicast-nearest": ":"}
"""Line style of each baseline; the choice of the unicast baseline decides the picture, so both are shown."""


def mean_times(results: StudyResults) -> dict[str, dict[Any, float]]:
    """Return the mean time of a shuffle in seconds, by scheduler and storage fraction."""
    series = results.series("samples.storage", "shuffle_time_s", "shuffle.scheduler")
    return {
        name: {trial.x: sum(trial.values) / len(trial.values) for trial in trials if trial.values}
        for name, trials in series.items()
    }


@figure_kind("shuffle-time", columns=2, width_in=4.4, height_in=3.6)
def draw_time(sheet: Sheet) -> None:
    """Draw figure 2."""
    [left, right], results = sheet.axes, sheet.results
    in_ms = results.derived_series(
        lambda row: row["samples.storage"],
        lambda row: 1e3 * row["shuffle_time_s"],
        lambda row: row["shuffle.scheduler"],
    )
    times = mean_times(results)
    in_ms = sheet.on_log_axes(in_ms, y=True)
    numbers = sheet.numbers(times)
    draw_all(left, in_ms, numbers=numbers)
    for baseline, dashes in BASELINES.items():
        for name, of_storage in times.items():
            shared = sorted(of_storage.keys() & times.get(baseline, {}).keys())
            if name in BASELINES or not shared:
                continue
            share = [100 * of_storage[x] / times[baseline][x] for x in shared]
            right.plot(shared, share, dashes, color=COLOURS[numbers[name]], linewidth=1.2)
        right.plot([], [], dashes, color="black", linewidth=1.2, label=f"of {baseline}")
    for each, words in ((left, "shuffle time (ms)"), (right, "shuffle time / unicast (%)")):
        each.set(xlabel="storage fraction", xlim=(0, None), ylabel=words)
        each.set_yscale("log", subs=(2, 5))  # the master is far above all others
        each.yaxis.set_major_formatter("{x:g}")
        each.yaxis.set_minor_formatter("{x:g}")
    right.axhline(100, color="grey", linewidth=0.8)
    explain_marks(left, verdicts(in_ms))
    for each in (left, right):
        each.legend(fontsize="small")


# ---- Figure 4: how long schedulers take, against the size of the shuffle ----


SCHEDULING_GOALS_S = {(8, 50_000): 60.0, (16, 200_000): 3600.0}
"""Upper limits of the processor time of a schedule, by (k, samples) of a fat-tree whose hosts are all workers."""


def label(row: Row) -> str:
    return f"{row['shuffle.scheduler']}, {row['topology.kind']}"


@figure_kind("shuffle-growth", width_in=5.2, height_in=3.8)
def draw_growth(sheet: Sheet) -> None:
    """Draw figure 4; goals are short bars."""
    [axes], results = sheet.axes, sheet.results
    times = results.derived_series(itemgetter("samples.samples"), itemgetter("schedule_s"), label)
    shown = sheet.on_log_axes(times, x=True, y=True)
    draw_all(axes, shown, numbers=sheet.numbers(shown))
    ticks = sorted({point.x for points in shown.values() for point in points})
    drawn = {str(trial.row["topology.kind"]) for trial in results.trials}
    goals = [(samples, goal_s) for (k, samples), goal_s in SCHEDULING_GOALS_S.items() if f"fat-tree:{k}" in drawn]
    if goals:
        axes.plot(*zip(*goals, strict=True), "_", color="black", markersize=16, label="goal")
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="processor time of a schedule (s)")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.legend(fontsize="small")


# ---- Waits ----
#
# Figure 5: how long packets of class A wait for a neighbour's sample, against the threshold.


X = "shuffle.threshold_us"
WAITS = {
    "longest, on the network": "max_wait_s",
    "longest, in the schedule": "planned_wait_s",
    "mean, on the network": "mean_wait_s",
}


@figure_kind("shuffle-waits", columns=2, width_in=4.4, height_in=3.6)
def draw_waits(sheet: Sheet) -> None:
    """Draw figure 5."""
    [left, right], results = sheet.axes, sheet.results
    found = []
    for number, (name, column) in enumerate(WAITS.items()):
        waits = results.derived_series(itemgetter(X), partial(_in_us, column), lambda row: None)
        for trials in waits.values():
            draw_series(left, trials, label=name, number=number)
        found += verdicts(waits)
    thresholds = sorted({trial.row[X] for trial in results.trials})
    left.plot(thresholds, thresholds, "--", color="black", linewidth=0.8, label="the threshold")
    for number, column in enumerate(("hops", "loans")):
        for trials in results.series(X, column).values():
            draw_series(right, trials, label=column, number=number)
    for each in (left, right):
        each.set_xscale("symlog", linthresh=min(t for t in thresholds if t > 0))
        each.set_xticks(thresholds, [f"{threshold / 1000:g}" for threshold in thresholds])
        each.set_xticks([], minor=True)
    left.set_yscale("symlog", linthresh=100)
    left.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    left.set(xlabel="threshold (ms)", ylim=(0, None), ylabel="wait of a packet (ms)")
    right.set(xlabel="threshold (ms)", ylim=(0, None), ylabel="number in the schedule")
    explain_marks(left, found)
    for each in (left, right):
        each.legend(fontsize="small")


def _in_us(column: str, row: Row) -> float:
    return 1e6 * float(row[column])
