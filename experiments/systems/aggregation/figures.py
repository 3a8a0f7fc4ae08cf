"""The seven figures of aggregation (docs/figures.md), as figure kinds that studies name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

from gradbed.experiments.plotting.series import (
    SeriesPoint,
    draw_all,
    draw_companion,
    draw_series,
    explain_marks,
    verdicts,
)
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.definition import CourseSection
from gradbed.experiments.study.evaluation.figures import course_of, draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.systems.aggregation.metrics import SHARE
from gradbed.experiments.tables.metric import confidence_interval
from gradbed.formats.lanes import frame_bytes
from gradbed.topo.registry import parse_topology
from gradbed.topo.selectors import choose_hosts_of_jobs

NUMBERS = {"parameter server": 0, "in-network": 1, "ring": 2, "gloo": 3}
"""Index of colour and marker of each method, the same in all figures."""


def mode(row: Mapping[str, Any]) -> str:
    """Return who sums in a trial whose sweep has workload.exchange and switches.placement."""
    if row["workload.exchange"] != "server":
        return str(row["workload.exchange"])
    return "parameter server" if row["switches.placement"] == "none" else "in-network"


def in_link_rates(row: Mapping[str, Any], name: str) -> float | None:
    """Return a rate of a row of the table of trials in units of the link rate."""
    value = row.get(name)
    return None if value is None else float(value) / float(row["link_rate_bps"])


# ---- Placement ----
#
# Figure 1: throughput against the number of programmable switches, a panel for each topology.


LIMITED = ("greedy", "greedy-gradients", "exhaustive", "milp", "highest-degree", "random")
"""Placement methods that choose at most M switches; they are drawn as lines.

The other methods have no limit; they are bars of a panel of their own.
"""
UNLIMITED = ("none", "server-tor", "every-tor", "grid")
OTHERS = 7
"""Number of the colour of methods without a limit."""
DODGE = 0.14


def kinds(results: StudyResults) -> list[str]:
    """Return the topology kinds, in the order of the study."""
    return list(dict.fromkeys(trial.row["topology.kind"] for trial in results.trials))


@figure_kind(
    "aggregation-placement", columns=lambda results, _: len(kinds(results)), rows=2, width_in=4.4, height_in=2.9
)
def draw_placement(sheet: Sheet) -> None:
    """Draw figure 1: methods that choose at most M switches above, the others below; y is the throughput column."""
    axes, found = sheet.axes, kinds(sheet.results)
    for column, kind in enumerate(found):
        _draw_column(sheet, axes[column], axes[len(found) + column], kind)
    for panel in (axes[0], axes[len(found)]):
        panel.set_ylabel("throughput / link rate")
    explain_marks(axes[0], [trial.row["verdict"] for trial in sheet.results.trials])
    legend_below(axes[0], 3)


def _draw_column(sheet: Sheet, axes: Any, below: Any, kind: str) -> None:
    results, section = sheet.results, sheet.section
    measured = _series(results, section.y, kind)
    bounds = {name: _series(results, name, kind) for name in ("bound_bps", "packet_bound_bps")}
    most = max((point.x for name in LIMITED for point in measured.get(name, [])), default=0)
    lines = [name for name in LIMITED if name in measured]
    others = [name for name in UNLIMITED if name in measured]
    numbers = sheet.numbers(lines)
    for place, name in enumerate(lines):
        number, offset = numbers[name], DODGE * (place - (len(lines) - 1) / 2)
        places = {point.x: point.x + offset for point in measured[name]}
        shifted = [replace(point, x=places[point.x]) for point in measured[name]]
        draw_series(axes, shifted, label=name, number=number, possible=SHARE)
        _draw_bounds(axes, bounds, name, places, COLOURS[number])
    for place, name in enumerate(others):
        # The same run stands for every M.
        alone = {point.x: float(place) for point in measured[name][:1]}
        draw_series(below, measured[name][:1], label=None, number=OTHERS, x_of=alone, possible=SHARE, bar_width=0.5)
        _draw_bounds(below, bounds, name, alone, COLOURS[OTHERS])
    axes.set_xticks(range(most + 1), [str(m) for m in range(most + 1)])
    axes.set(title=kind, xlabel="switches that may sum besides the server's ToR (M)", ylim=(0, 1.08))
    below.set_xticks(range(len(others)), others)
    below.set(xlabel="placement without a limit", xlim=(-0.6, max(len(others), 1) - 0.4), ylim=(0, 1.08))
    axes.plot([], [], "_", color="black", markersize=11, label="upper bound of the linear program")
    axes.plot([], [], ".", color="black", markersize=3, label="upper bound for packets with these labels")


def _series(results: StudyResults, name: str, kind: str) -> dict[str, list[SeriesPoint]]:
    return results.derived_series(
        lambda row: row["switches.programmable"],
        lambda row: in_link_rates(row, name) if row["topology.kind"] == kind else None,
        lambda row: row["switches.placement"],
    )


def _draw_bounds(
    axes: Any,
    bounds: Mapping[str, Mapping[str, Sequence[SeriesPoint]]],
    method: str,
    places: Mapping[int, float],
    colour: str,
) -> None:
    """Draw the linear program's bound as a dash and the packet bound as a dot: means over repetitions at each
    position.
    """
    for name, marker, size in (("bound_bps", "_", 11), ("packet_bound_bps", ".", 3)):
        found = [point for point in bounds[name].get(method, []) if point.x in places]
        values = [(*point.values, *point.invalid) for point in found]
        axes.plot(
            [places[point.x] for point in found],
            [sum(each) / len(each) for each in values],
            marker,
            color="black",
            markersize=size,
            zorder=4,
        )


# ---- Figure 2: throughput and round time against the number of workers ----


def ring_bound(workers: int) -> float:
    """Return the upper bound of ring all-reduce among two or more workers, in units of the link rate.

    Each worker sends 2(n-1)/n gradients over its own link (Patarasuk and Yuan, "Bandwidth optimal all-reduce
    algorithms", JPDC 69, 2009).
    """
    return workers / (2 * (workers - 1))


@figure_kind("aggregation-workers", columns=2)
def draw_workers(sheet: Sheet) -> None:
    """Draw figure 2."""
    [left, right], results = sheet.axes, sheet.results
    workers = itemgetter("workload.workers")
    throughput, bounds, packets = (
        results.derived_series(workers, partial(in_link_rates, name=name), mode)
        for name in ("throughput_bps", "bound_bps", "packet_bound_bps")
    )
    times = results.derived_series(workers, lambda row: 1e3 * row["round_time_s"], mode)
    draw_all(left, throughput, numbers=NUMBERS, possible=SHARE)
    draw_all(right, times, numbers=NUMBERS)
    for companions, dashes in ((bounds, "--"), (packets, "-.")):
        for name, points in companions.items():
            draw_companion(left, points, label=None, number=NUMBERS[name], dashes=dashes)
    counts = sorted({point.x for point in throughput.get("ring", []) if point.x > 1})
    if counts:
        left.plot(counts, [ring_bound(n) for n in counts], ":", color=COLOURS[NUMBERS["ring"]], linewidth=1.0)
    for dashes, label in (
        ("--", "upper bound of the linear program"),
        ("-.", "upper bound for packets with their labels"),
        (":", "upper bound of the ring, n / 2(n - 1)"),
    ):
        left.plot([], [], dashes, color="black", linewidth=1.0, label=label)
    for panel in (left, right):
        panel.set_xlabel("workers")
        panel.xaxis.get_major_locator().set_params(integer=True)
    left.set(ylim=(0, 1.08), ylabel="throughput / link rate")
    right.set(ylim=(0, None), ylabel="median round time (ms)")
    explain_marks(left, verdicts(throughput))
    legend_below(left, 3)


# ---- Figure 3: round time, and packets sent again, against loss ----


X = "topology.link.loss"
WORDS = {"aimd": "window closes for losses and marks", "ecn": "window closes for marks alone", "none": "fixed window"}
LINKS = 2
"""Number of links from a worker to the server: its own, and the server's."""


@dataclass(frozen=True)
class LossModel:
    """Workers and server on one aggregation switch; times are nominal. docs/figures.md, figure 3, derives the
    formulas.
    """

    workers: int
    fragments: int
    window: int
    packet_ms: float
    delay_ms: float
    min_timeout_ms: float

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> LossModel:
        """Build the model of a trial on a star."""
        workload, link = configuration["workload"], configuration["topology"]["link"]
        return cls(
            workers=workload["workers"],
            fragments=math.ceil(workload["values"] / workload["lanes"]),
            window=workload["window_fragments"],
            packet_ms=8 * frame_bytes(workload["lanes"]) / link["rate_mbps"] / 1e3,
            delay_ms=link["delay_us"] / 1e3,
            min_timeout_ms=workload["min_timeout_us"] / 1e3,
        )

    @property
    def round_trip_ms(self) -> float:
        """Round trip without queues."""
        return 2 * LINKS * (self.packet_ms + self.delay_ms)

    def timeouts(self, loss: float) -> float:
        """Return the expected number of extra timeouts for each use of a slot.

        A use takes n packets up, one sum, one answer and n copies of it: each try fails with probability 1 - (1 -
        p)^(2n + 2), so that there are about 2np timeouts.
        """
        fails = 1 - (1 - loss) ** (2 * self.workers + 2)
        return fails / (1 - fails)

    def round_time_ms(self, lossless_ms: float, loss: float, *, repair_ms: float) -> float:
        """Return the round time when each slot is used fragments / window times in turn and waits repair_ms for
        each failure.
        """
        return lossless_ms + self.fragments / self.window * self.timeouts(loss) * repair_ms

    def repeats(self, loss: float) -> float:
        """Return the expected number of packets that a worker resends for each fragment, (n + 3)p.

        It resends if any worker's packet, the sum or the answer is lost, all of which leave it without an answer, or
        its own copy of the answer.
        """
        return (self.workers + 3) * loss


@figure_kind("aggregation-loss", columns=2, width_in=4.9, height_in=3.9)
def draw_loss(sheet: Sheet) -> None:
    """Draw figure 3; the left panel has the mean of rounds, since rare timeouts do not show in medians."""
    axes, results = sheet.axes, sheet.results
    policy = itemgetter("workload.congestion_control")
    model = LossModel.of(next(iter(results.configurations().values())))
    each = model.fragments * model.workers
    times = results.derived_series(itemgetter(X), lambda row: 1e3 * row["mean_round_time_s"], policy)
    repeats = results.derived_series(itemgetter(X), lambda row: row["resends"] / each if row[X] > 0 else None, policy)
    losses = sorted({point.x for points in repeats.values() for point in points})
    lossless = [value for points in times.values() for point in points if point.x == 0 for value in point.values]
    bound = max(trial.row["bound_bps_normalised"] for trial in results.trials)
    for panel, series in zip(axes, (times, repeats), strict=True):
        # The times without loss are a line of their own.
        lossy = {name: [point for point in points if point.x > 0] for name, points in series.items()}
        draw_all(panel, sheet.on_log_axes(lossy, x=True, y=series is repeats), names=WORDS)
        panel.set(xscale="log", xlabel="loss probability of every link and direction (p)")
    least_ms = model.fragments * model.packet_ms / bound
    axes[0].axhline(least_ms, color="grey", linestyle="--", linewidth=0.9, label="lower bound of the linear program")
    if lossless and len(losses) > 1:
        _draw_curves(axes, model, sum(lossless) / len(lossless), _logarithmic(losses[0], losses[-1]))
    slowest = max(line for points in times.values() for p in points for line in p.values)
    axes[0].set(ylabel="mean round time (ms)", ylim=(0, 1.3 * slowest))
    axes[1].set(
        yscale="log",
        ylim=(0.3 * model.repeats(losses[0]), 5 * model.repeats(losses[-1])),
        ylabel="resends per worker and fragment",
    )
    explain_marks(axes[0], verdicts(times))
    handles, labels = axes[0].get_legend_handles_labels()
    more, words = axes[1].get_legend_handles_labels()
    axes[0].figure.legend([*handles, more[-1]], [*labels, words[-1]], loc="outside lower center", ncols=2)


def _draw_curves(axes: Sequence[Any], model: LossModel, lossless_ms: float, losses: Sequence[float]) -> None:
    axes[0].axhline(lossless_ms, color="grey", linewidth=0.9, label="measured without loss")
    for repair_ms, dashes, label in (
        (model.round_trip_ms + model.min_timeout_ms, ":", "analytic: 2np timeouts for each slot use"),
        (model.window * model.packet_ms, "-.", "analytic: round trips in place of timeouts"),
    ):
        curve = [model.round_time_ms(lossless_ms, loss, repair_ms=repair_ms) for loss in losses]
        axes[0].plot(losses, curve, dashes, color="black", linewidth=1.0, label=label)
    repeats = [model.repeats(loss) for loss in losses]
    axes[1].plot(losses, repeats, "--", color="black", linewidth=1.0, label="analytic: (n + 3)p resends")


def _logarithmic(first: float, last: float, count: int = 60) -> list[float]:
    return [first * (last / first) ** (step / (count - 1)) for step in range(count)]


# ---- Figure 4: throughput, and sums made in the switch, against slots for each live fragment ----


@dataclass(frozen=True)
class SlotModel:
    """Jobs on one switch whose workers have `window` unacknowledged fragments each.

    docs/figures.md, figure 4, derives the formulas.
    """

    jobs: int
    workers: int
    window: int
    round_trip_packets: float
    """Round trip without queues, in packet times."""

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> SlotModel:
        """Build the model of a trial on a star."""
        workload, link = configuration["workload"], configuration["topology"]["link"]
        packet_us = 8 * frame_bytes(workload["lanes"]) / link["rate_mbps"]
        return cls(
            jobs=workload["jobs"],
            workers=workload["workers"],
            window=workload["window_fragments"],
            round_trip_packets=2 * LINKS * (1 + link["delay_us"] / packet_us),
        )

    @property
    def live(self) -> int:
        """Number of fragments in flight, over all jobs (L)."""
        return self.jobs * self.window

    @staticmethod
    def thrown(slots_per_live: float, live: int) -> float:
        """Return the share of L live fragments that have a slot if all at once are hashed into A slots: (A/L)(1 -
        (1 - 1/A)^L).
        """
        slots = slots_per_live * live
        return slots_per_live * (1 - (1 - 1 / slots) ** live) if slots > 1 else slots_per_live

    @staticmethod
    def in_turn(slots_per_live: float) -> float:
        """Return the same share if each fragment arrives while the others hold their slots: A / (A + L)."""
        return slots_per_live / (1 + slots_per_live)

    def dynamic_throughput(self, share: float) -> float:
        """Return the throughput in link rates with shared slots.

        The server's link carries one packet of a fragment that was summed in the switch, and n of another one.
        """
        return 1 / (share + (1 - share) * self.workers)

    def static_throughput(self, slots_per_live: float) -> float:
        """Return the throughput in link rates when a job has no more fragments in flight than slots."""
        window = min(self.window, slots_per_live * self.window)
        return min(1.0, window / self.round_trip_packets)


@figure_kind("aggregation-slots", columns=2, width_in=4.9, height_in=3.8)
def draw_slots(sheet: Sheet) -> None:
    """Draw figure 4."""
    [left, right], results = sheet.axes, sheet.results
    model = SlotModel.of(next(iter(results.configurations().values())))
    shares = _summed_shares(results)

    def places(row: Mapping[str, Any]) -> float:
        return float(row["switches.slots"]) / model.live

    policy = itemgetter("switches.slot_policy")
    throughput = results.derived_series(places, lambda row: in_link_rates(row, "throughput_bps"), policy)
    summed = results.derived_series(places, lambda row: shares.get(row["digest"]), policy)
    numbers = {name: number for number, name in enumerate(throughput)}
    ratios = sorted({point.x for points in throughput.values() for point in points})
    curve = [ratios[0] * (ratios[-1] / ratios[0]) ** (step / 80) for step in range(81)]
    for panel, series in ((left, throughput), (right, summed)):
        draw_all(panel, series, numbers=numbers, possible=SHARE)
        panel.set_xscale("log", base=2)
        panel.set(xlabel="slots per live fragment (A / L)", ylim=(0, 1.08))
    dynamic = {"color": COLOURS[numbers.get("dynamic", 0)], "linewidth": 1.0}
    for model_share, dashes, label in (
        (lambda x: model.thrown(x, model.live), ":", "(A/L)(1 - (1 - 1/A)$^L$)"),
        (model.in_turn, "-.", "A / (A + L)"),
    ):
        right.plot(curve, [model_share(x) for x in curve], dashes, **dynamic)
        reached = [model.dynamic_throughput(model_share(x)) for x in curve]
        left.plot(curve, reached, dashes, **dynamic, label=f"dynamic, analytic: {label}")
    left.plot(
        curve,
        [model.static_throughput(x) for x in curve],
        ":",
        color=COLOURS[numbers.get("static", 1)],
        linewidth=1.0,
        label="static, analytic: slots / round trip",
    )
    alone = [row["bound_bps"] / row["link_rate_bps"] for row in _job_rows(results)]
    left.axhline(max(alone), color="black", linestyle="--", linewidth=1.0, label="upper bound of the linear program")
    left.set_ylabel("throughput of a job / link rate")
    right.set_ylabel("share summed in the switch")
    explain_marks(left, verdicts(throughput))
    legend_below(left, 2)


def _summed_shares(results: StudyResults) -> dict[str, float]:
    """Return the complete sums that the switch made over the fragments of all jobs and rounds, by digest of the
    trial.
    """
    configurations = results.configurations()
    shares = {}
    for row in results.table("events"):
        workload = configurations[row["digest"]]["workload"]
        fragments = workload["jobs"] * workload["rounds"] * math.ceil(workload["values"] / workload["lanes"])
        shares[row["digest"]] = row.get("completed", 0) / fragments
    return shares


def _job_rows(results: StudyResults) -> list[dict[str, Any]]:
    rates = {trial.row["digest"]: trial.row["link_rate_bps"] for trial in (*results.trials, *results.other_clock)}
    return [{**row, "link_rate_bps": rates[row["digest"]]} for row in results.table("jobs")]


# ---- Figure 5: what each of several jobs gets, and how fair that is ----


PLACED = {"greedy": "greedy placement", "server-tor": "server's ToR alone", "none": "no sums in switches"}
GROUP_WIDTH = 0.75
"""Width of the jobs of all series at one position."""


@figure_kind("aggregation-jobs", columns=2, width_in=5.0, height_in=3.6)
def draw_jobs(sheet: Sheet) -> None:
    """Draw figure 5; the left panel has every job beside the others, with the bound that it has alone."""
    [left, right], results = sheet.axes, sheet.results
    jobs = {(row["digest"], row["job"]): row for row in results.table("jobs")}
    counts = sorted({trial.row["workload.jobs"] for trial in results.trials})
    names = list(dict.fromkeys(trial.row["switches.placement"] for trial in results.trials))
    verdicts, numbers = [], sheet.numbers(names)
    for place_of_name, name in enumerate(names):
        number = numbers[name]
        for job in range(1, max(counts) + 1):
            measured, bounds = (
                results.derived_series(
                    lambda row: row["workload.jobs"],
                    partial(_of_job, jobs, name, job, column),
                    lambda row: row["switches.placement"],
                ).get(name, [])
                for column in ("throughput_bps", "bound_bps")
            )
            for point, bound in zip(measured, bounds, strict=True):
                place = counts.index(point.x) + _offset(place_of_name, len(names), job, point.x)
                draw_series(left, [point], label=None, number=number, x_of={point.x: place}, possible=SHARE)
                alone = (*bound.values, *bound.invalid)
                left.plot([place], [sum(alone) / len(alone)], "_", color=COLOURS[number], markersize=8)
                verdicts.append(point.verdict)
    fairness = results.series("workload.jobs", "fairness", "switches.placement")
    for place_of_name, name in enumerate(names):
        places = {count: index + 0.12 * (place_of_name - 1) for index, count in enumerate(counts)}
        draw_series(right, fairness[name], label=PLACED[name], number=numbers[name], x_of=places, possible=SHARE)
    right.plot([], [], "_", color="black", markersize=8, label="upper bound of a job alone")
    for panel, label in ((left, "throughput of each job / link rate"), (right, "Jain's fairness index")):
        panel.set_xticks(range(len(counts)), [str(count) for count in counts])
        panel.set(xlim=(-0.6, len(counts) - 0.4), ylim=(0, 1.08), xlabel="concurrent jobs", ylabel=label)
    explain_marks(right, verdicts)
    legend_below(right, 3)


def _of_job(
    jobs: Mapping[tuple[str, int], Mapping[str, Any]], name: str, job: int, column: str, row: Mapping[str, Any]
) -> float | None:
    found = jobs.get((row["digest"], job))
    if found is None or row["switches.placement"] != name:
        return None
    return float(found[column]) / float(row["link_rate_bps"])


def _offset(number: int, series: int, job: int, jobs: int) -> float:
    """Return the offset from the middle of a group: series beside each other, and in each series its jobs."""
    width = GROUP_WIDTH / series
    inside = 0.0 if jobs == 1 else (job - 1) / (jobs - 1) - 0.5
    return width * (number - (series - 1) / 2 + 0.7 * inside)


# ---- Figure 6: what all links together carry for one gradient, against the number of workers ----


def lower_bound(topology: str, workers: int) -> int:
    """Return a lower bound on bytes times hops, in gradients: twice the edges of the smallest tree that spans the
    job.

    It holds on trees of switches such as fat-trees and leaf-spines (docs/figures.md, figure 6).
    """
    from gradbed.controller.systems.aggregation.placement.spanning import (
        least_spanning_edges,  # loads SciPy's optimisers
    )

    network = parse_topology(topology)
    [(names, _)] = choose_hosts_of_jobs(network, 1, workers)
    return 2 * least_spanning_edges(network, names)


NAMES = {"ring": "ring all-reduce"}
BOUND = "lower bound: 2 x edges of the tree that spans the workers"


@figure_kind("aggregation-byte-hops", width_in=5.2, height_in=3.6)
def draw_byte_hops(sheet: Sheet) -> None:
    """Draw figure 6."""
    [axes], results = sheet.axes, sheet.results
    gradients = {row["digest"]: float(row["gradient_bytes"]) for row in results.table("jobs")}
    measured = results.derived_series(
        lambda row: row["workload.workers"],
        lambda row: row["byte_hops"] / gradients[row["digest"]] if row["digest"] in gradients else None,
        mode,
    )
    draw_all(axes, measured, names=NAMES, numbers=NUMBERS)
    counts = sorted({point.x for points in measured.values() for point in points})
    kind = next(iter(results.configurations().values()))["topology"]["kind"]
    bounds = [lower_bound(kind, n) for n in counts]
    axes.plot(counts, bounds, "--", color="black", linewidth=1.0, label=BOUND)
    axes.set(xlabel="workers", ylabel="bytes x hops of a round / gradient bytes", ylim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    explain_marks(axes, verdicts(measured))
    axes.legend()


# ---- Figure 7: test accuracy against the time spent on communication ----


TARGET = 0.9
"""Accuracy to reach."""

COURSE = CourseSection(table="rounds", step="round", x="round_time_s", x_times=1e3, cumulative=True, y="accuracy")

Course = list[tuple[float, float]]
"""(milliseconds of communication so far, accuracy) after each round."""


def course(trial: TrialRecord) -> Course:
    """Return the accuracy over communication time of a trial."""
    return [(x, y) for _, x, y in course_of(trial, COURSE)]


def time_to_accuracy_ms(course: Course, target: float = TARGET) -> float | None:
    """Return the communication time until the accuracy is reached first; None if it never is."""
    return next((time for time, accuracy in course if accuracy >= target), None)


@figure_kind("aggregation-accuracy", columns=2, width_in=4.4, height_in=3.5)
def draw_accuracy(sheet: Sheet) -> None:
    """Draw figure 7: on the left the first repetition, on the right when each repetition reaches the target."""
    [left, right], results = sheet.axes, sheet.results
    of_point = {trial.digest: course(trial) for trial in (*results.trials, *results.other_clock)}
    reached = results.derived_series(mode, lambda row: time_to_accuracy_ms(of_point[row["digest"]]), mode)
    for trial in results.trials:
        if trial.repetition == 0:
            name = mode(trial.row)
            times, accuracies = zip(*of_point[trial.digest], strict=True)
            percent = [confidence_interval([100 * accuracy]) for accuracy in accuracies]
            draw_line(left, times, percent, label=name, number=NUMBERS[name])
    left.axhline(100 * TARGET, color="grey", linestyle="--", linewidth=0.8)
    left.set(xlabel="time spent on communication (ms)", ylabel="test accuracy (%)", xlim=(0, None))
    left.legend(loc="lower right")
    places = {name: float(index) for index, name in enumerate(dict.fromkeys(mode(p.row) for p in results.trials))}
    draw_all(right, reached, is_labelled=False, numbers=NUMBERS, x_of=places)
    right.set_xticks(list(places.values()), list(places))
    right.set(
        xlim=(-0.5, len(places) - 0.5),
        ylim=(0, None),
        ylabel=f"communication until {100 * TARGET:.0f} % accuracy (ms)",
    )
    explain_marks(right, verdicts(reached))
    if right.get_legend_handles_labels()[1]:
        right.legend()
