"""Figure 6: what all links together carry for one gradient, against the number of workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.planning.hosts import choose_hosts_of_jobs
from controller.systems.aggregation.placement.spanning import least_spanning_edges
from experiments.plotting.series import draw_series, explain_marks
from experiments.plotting.style import figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.systems.aggregation.figures.modes import NUMBERS, mode
from experiments.tables.metric import Metric
from topo.registry import parse_topology


def lower_bound(topology: str, workers: int) -> int:
    """Twice the edges of the least tree that spans the workers of a job with so many, in gradients; a lower bound on
    trees of switches such as fat-trees and leaf-spines (docs/figures.md)."""
    network = parse_topology(topology)
    [(names, _)] = choose_hosts_of_jobs(network, 1, workers)
    return 2 * least_spanning_edges(network, names)


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS."""
    gradients = {(row["digest"]): float(row["gradient_bytes"]) for row in results.table("jobs")}
    measured = results.derived_series(
        lambda row: row["workload.workers"],
        lambda row: row["byte_hops"] / gradients[row["digest"]] if row["digest"] in gradients else None,
        mode,
    )
    names = {"parameter server": "unicast (parameter server)", "in-network": "aggregation", "ring": "ring"}
    with figure(width_in=5.2, height_in=3.6) as (made, [axes]):
        for name, points in measured.items():
            draw_series(axes, points, label=names.get(name, name), number=NUMBERS[name])
        counts = sorted({point.x for points in measured.values() for point in points})
        kind = next(iter(results.configurations().values()))["topology"]["kind"]
        axes.plot(
            counts,
            [lower_bound(kind, n) for n in counts],
            "--",
            color="black",
            linewidth=1.0,
            label="2 x edges of the tree that spans the workers",
        )
        axes.set_xlabel("workers")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel("bytes x hops of a round / gradient bytes")
        axes.set_ylim(bottom=0)
        axes.set_title(kind)
        explain_marks(axes, [point.verdict for points in measured.values() for point in points])
        axes.legend()
        return save(made, path, results.heading)
