"""Figure 6: what all links together carry for one gradient, against the number of workers."""

from __future__ import annotations

from gradbed.controller.planning.hosts import choose_hosts_of_jobs
from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.systems.aggregation.figures.modes import NUMBERS, mode
from gradbed.topo.registry import parse_topology


def lower_bound(topology: str, workers: int) -> int:
    """Twice the edges of the least tree that spans the workers of a job with so many, in gradients; a lower bound on
    trees of switches such as fat-trees and leaf-spines (docs/figures.md)."""
    from gradbed.controller.systems.aggregation.placement.spanning import (
        least_spanning_edges,  # loads SciPy's optimisers
    )

    network = parse_topology(topology)
    [(names, _)] = choose_hosts_of_jobs(network, 1, workers)
    return 2 * least_spanning_edges(network, names)


NAMES = {"parameter server": "unicast (parameter server)", "in-network": "aggregation"}
BOUND = "2 x edges of the tree that spans the workers"


@figure_kind("aggregation-byte-hops", width_in=5.2, height_in=3.6)
def draw(sheet: Sheet) -> None:
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
    axes.set(xlabel="workers", ylabel="bytes x hops of a round / gradient bytes", ylim=(0, None), title=kind)
    axes.xaxis.get_major_locator().set_params(integer=True)
    explain_marks(axes, verdicts(measured))
    axes.legend()
