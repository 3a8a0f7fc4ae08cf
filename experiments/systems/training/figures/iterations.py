"""Figure 2: what an iteration consists of, by number of ranks and topology."""

from __future__ import annotations

import statistics
from collections import defaultdict

from gradbed.experiments.plotting.series import beside
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below

PLACE = "topology.kind"


@figure_kind("training-iterations", width_in=6.4, height_in=3.6)
def draw(sheet: Sheet) -> None:
    """A bar for each topology at each number of ranks: computing below, exposed communication above."""
    [axes], results, section = sheet.axes, sheet.results, sheet.section
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for point in results.points:
        if point.stored.is_good:
            row = point.row
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
    axes.bar(0, 0, color="grey", alpha=0.4, label="exposed communication")
    axes.set_xticks(list(places.values()), [str(ranks) for ranks in counts])
    axes.set(xlabel=section.x_label or "ranks", ylabel="iteration (ms)")
    legend_below(axes, 3)
