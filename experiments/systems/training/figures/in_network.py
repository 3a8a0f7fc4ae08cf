"""Figure 3: collectives by hosts and by switches, each beside its own bound."""

from __future__ import annotations

from collections import defaultdict

from gradbed.experiments.plotting.style import COLOURS, MARKERS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.tables.intervals import confidence_interval

SWITCHES, ALGORITHM = "collectives.in_network", "collectives.algorithm"


@figure_kind("training-in-network", width_in=6.0, height_in=3.6)
def draw(sheet: Sheet) -> None:
    """Rate of sums against size; dashed, what hosts' links allow if hosts add, and if switches do."""
    [axes], section = sheet.axes, sheet.section
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    bounds: dict[str, dict[float, float]] = defaultdict(dict)
    for point in sheet.results.points:
        if not point.stored.is_good:
            continue
        row = point.row
        by_hosts = row[SWITCHES] == "none"
        size = float(row[section.x])
        found[str(row[ALGORITHM]) if by_hosts else "in switches"][size].append(row["algorithm_rate_bps"] / 1e9)
        bounds["bound, hosts" if by_hosts else "bound, switches"][size] = row["bound_rate_bps"] / 1e9
    for number, (label, rates) in enumerate(found.items()):
        sizes = sorted(rates)
        values = [confidence_interval(rates[size]).estimate for size in sizes]
        axes.plot(sizes, values, color=COLOURS[number], marker=MARKERS[number], label=label)
    for dashes, (label, limits) in zip(("--", ":"), sorted(bounds.items()), strict=False):
        sizes = sorted(limits)
        axes.plot(sizes, [limits[size] for size in sizes], dashes, color="black", linewidth=1.0, label=label)
    axes.set_xscale("log")
    axes.set(xlabel="size of the vector (bytes)", ylabel="rate of sums (Gbit/s)", ylim=(0, None))
    axes.legend()
