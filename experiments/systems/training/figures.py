"""Figures of training that need more than lines, as figure kinds that studies name."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gradbed.experiments.plotting.series import beside
from gradbed.experiments.plotting.style import COLOURS, MARKERS
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.evaluation.figures import draw_line, tick_texts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.tables.metric import confidence_interval, path_words

# ---- Iterations ----
#
# Figure 2: what an iteration consists of, by number of ranks and topology.


PLACE = "topology.kind"


@figure_kind("training-iterations", width_in=6.4, height_in=3.6)
def draw_iterations(sheet: Sheet) -> None:
    """Draw figure 2: a bar for each topology and number of ranks, with compute below and exposed communication
    above.
    """
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for trial in results.trials:
        if trial.is_good:
            row = trial.row
            key = str(row[PLACE]), int(row["ranks"])
            found[key].append((1e3 * row["compute_time_s"], 1e3 * row["exposed_s"]))
    topologies = list(dict.fromkeys(topology for topology, _ in found))
    counts = sorted({ranks for _, ranks in found})
    places = {ranks: float(place) for place, ranks in enumerate(counts)}
    for number, topology in enumerate(topologies):
        at, width = beside(places, number, len(topologies))
        for ranks in counts:
            values = found.get((topology, ranks))
            if not values:
                continue
            compute, exposed = (statistics.fmean(each) for each in zip(*values, strict=True))
            first = ranks == counts[0]
            axes.bar(at[ranks], compute, width, color=COLOURS[number], label=topology if first else None)
            axes.bar(at[ranks], exposed, width, bottom=compute, color=COLOURS[number], alpha=0.4)
    axes.bar(0, 0, color="grey", alpha=0.4, label="light: exposed communication")
    axes.set_xticks(list(places.values()), [str(ranks) for ranks in counts])
    axes.set(xlabel=section.x_label or "ranks", ylabel="iteration time (ms)")
    legend_below(axes, 3)


# ---- Figure 3: collectives by hosts and by switches, each beside its own bound ----


SWITCHES, ALGORITHM = "collectives.in_network", "collectives.algorithm"


@figure_kind("training-in-network", width_in=6.0, height_in=3.6)
def draw_in_network(sheet: Sheet) -> None:
    """Draw figure 3: algorithm bandwidth against size; dashed, the upper bounds from host link rates.

    There is a bound for sums by hosts and one for sums by switches.
    """
    [axes], section = sheet.axes, sheet.section
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    bounds: dict[str, dict[float, float]] = defaultdict(dict)
    for trial in sheet.results.trials:
        if not trial.is_good:
            continue
        row = trial.row
        by_hosts = row[SWITCHES] == "none"
        size = float(row[section.x])
        found[str(row[ALGORITHM]) if by_hosts else "in switches"][size].append(row["algorithm_rate_bps"] / 1e9)
        bounds["upper bound, hosts" if by_hosts else "upper bound, switches"][size] = row["bound_rate_bps"] / 1e9
    numbers = sheet.numbers(found)
    for label, rates in found.items():
        number, sizes = numbers[label], sorted(rates)
        values = [confidence_interval(rates[size]).estimate for size in sizes]
        axes.plot(sizes, values, color=COLOURS[number], marker=MARKERS[number], label=label)
    for dashes, (label, limits) in zip(("--", ":"), sorted(bounds.items()), strict=False):
        sizes = sorted(limits)
        axes.plot(sizes, [limits[size] for size in sizes], dashes, color="black", linewidth=1.0, label=label)
    sizes = sorted({size for rates in found.values() for size in rates})
    axes.set_xscale("log")
    axes.set_xticks(sizes, tick_texts(section.x, sizes))
    axes.set_xticks([], minor=True)
    axes.set(xlabel="size of the vector", ylabel="algorithm bandwidth (Gbit/s)", ylim=(0, None))
    axes.legend()


# ---- Figure 5: iterations, one after the other, with what is wrong in the network or at a rank ----


SLOW, FAULTS = "ranks.slow", "faults"


def _label(configuration: Mapping[str, Any]) -> str:
    slow = [f"{host} computes {factor} times as long" for host, _, factor in _parts(configuration["ranks"]["slow"])]
    faults = [_fault(each) for each in configuration["faults"]]
    return "; ".join([*slow, *faults]) or "no fault"


def _parts(slow: list[str]) -> list[tuple[str, str, str]]:
    return [each.partition(":") for each in slow]


def _fault(fault: Mapping[str, Any]) -> str:
    where = "-".join(fault.get("link", ())) or fault.get("switch", "")
    return f"{fault['fault']} {where} at {fault['at_ms']:g} ms"


@figure_kind("training-slow", width_in=6.0, height_in=3.6)
def draw_slow(sheet: Sheet) -> None:
    """Draw figure 5: the time of each iteration of the first job, as means over repetitions."""
    [axes], results = sheet.axes, sheet.results
    configurations = results.configurations()
    times: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in results.trials:
        for row in trial.table("iterations"):
            if row["job"] == 1:
                times[_label(configurations[trial.digest])][row["iteration"]].append(1e3 * row["time_s"])
    for number, (label, found) in enumerate(times.items()):
        steps = sorted(found)
        values = [confidence_interval(found[step]) for step in steps]
        draw_line(axes, steps, values, label=label, number=number, has_band=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="iteration", ylabel="iteration time (ms)", ylim=(0, None))
    axes.legend()


# ---- Figure 6: what ranks do when, a bar for each node of their graphs, as a Gantt chart ----


RANKS = 8
"""Largest number of ranks that are shown of a trial."""
_COLOURS: Mapping[str, str] = {
    "compute": COLOURS[0],
    "memory": COLOURS[6],
    "all-reduce": COLOURS[1],
    "reduce-scatter": COLOURS[3],
    "all-gather": COLOURS[5],
    "all-to-all": COLOURS[2],
    "send": COLOURS[4],
}
_OTHER = "#555555"


PANELS = 3


def _shown(results: StudyResults) -> list[TrialRecord]:
    """Return some first repetitions whose ranks reported their nodes."""
    return [trial for trial in results.trials if trial.repetition == 0 and trial.table("nodes")][:PANELS]


@figure_kind("training-timeline", rows=lambda results, _: len(_shown(results)), width_in=7.2, height_in=2.8)
def draw_timeline(sheet: Sheet) -> str:
    """Draw figure 6: a panel for each trial, with two lines for each rank: compute, and communication below."""
    trials = _shown(sheet.results)
    for axes, trial in zip(sheet.axes, trials, strict=True):
        _draw_trial(axes, trial)
        if len(trials) > 1:
            axes.set_title(f"{path_words(sheet.section.x)}: {trial.row[sheet.section.x]}")
    sheet.axes[-1].set_xlabel("time (ms)")
    legend_below(sheet.axes[-1], 5)
    return sheet.results.heading_of_first


def _draw_trial(axes: Any, trial: TrialRecord) -> None:
    # A receive is a wait: what comes is the peer's send.
    rows = [
        row
        for row in trial.table("nodes")
        if row["iteration"] == 0 and row["job"] == 1 and row["rank"] < RANKS and row["kind"] != "receive"
    ]
    first_s = min(row["begin_s"] for row in rows)
    bars: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        begin_ms = 1e3 * (row["begin_s"] - first_s)
        bars[row["rank"], row["kind"]].append((begin_ms, 1e3 * (row["end_s"] - row["begin_s"])))
    named = set()
    for (rank, kind), spans in sorted(bars.items()):
        computes = kind in ("compute", "memory")
        axes.broken_barh(
            spans,
            (-rank + (0.02 if computes else -0.38), 0.36),
            color=_COLOURS.get(kind, _OTHER),
            linewidth=0,
            label=None if kind in named else kind,
        )
        named.add(kind)
    ranks = sorted({row["rank"] for row in rows})
    axes.set_yticks([-rank for rank in ranks], [f"rank {rank}" for rank in ranks])
    axes.set_xlim(0, None)
    axes.grid(axis="y", visible=False)


# ---- Figure 7: iterations with sums by hosts and by switches, by model and parallelism ----


SUMS = (("none", "sums by hosts", 0), ("aggregation", "sums by switches", 5))
"""Value of the column, label and number of the colour."""


def _model(row: Mapping[str, Any]) -> str:
    return f"width {row['workload.width']}\ndp {row['workload.dp']}, tp {row['workload.tp']}, pp {row['workload.pp']}"


@figure_kind("training-models", width_in=7.2, height_in=3.8)
def draw_models(sheet: Sheet) -> None:
    """Draw figure 7: bars with compute below and exposed communication above, for sums by hosts and by switches."""
    [axes], results = sheet.axes, sheet.results
    rows = [trial.row for trial in results.trials if trial.is_good]
    places = {model: float(place) for place, model in enumerate(dict.fromkeys(map(_model, rows)))}
    for place, (who, label, number) in enumerate(SUMS):
        at, width = beside(places, place, 2)
        own = [row for row in rows if row[SWITCHES] == who]
        xs = [at[_model(row)] for row in own]
        compute = [1e3 * row["compute_time_s"] for row in own]
        axes.bar(xs, compute, width, color=COLOURS[number], label=label)
        exposed = [1e3 * row["exposed_s"] for row in own]
        axes.bar(xs, exposed, width, bottom=compute, color=COLOURS[number], alpha=0.4)
    axes.bar(0, 0, color="grey", alpha=0.4, label="light: exposed communication")
    axes.set_xticks(list(places.values()), list(places), fontsize=7)
    axes.set(ylabel="iteration time (ms)")
    legend_below(axes, 3)
