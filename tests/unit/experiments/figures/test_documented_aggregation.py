"""What docs/figures.md says of aggregation's figures, computed from their data."""

from __future__ import annotations

import pytest

from experiments.study.loading import load_study
from experiments.study.make_figures import studies_of
from tests.unit.documented_figures import figure_data, said

DOCUMENT = "docs/figures.md"


def test_byte_hops() -> None:
    data = figure_data("aggregation_6_byte_hops")
    # The server gets the sum once: that is a gradient on a link.
    gradient_bytes = data.row(workers=2, placement="greedy")["server_bytes"]
    unicast, ring, sums = (
        data.row(workers=15, exchange=exchange, placement=placement)["byte_hops"] / gradient_bytes
        for exchange, placement in (("server", "none"), ("ring", "none"), ("server", "greedy"))
    )
    tree_edges = 15 + 8 + 4  # workers, all edge switches, all pods
    said(
        DOCUMENT,
        f"With 15 workers unicast carries {unicast:.0f} gradients, the ring {ring:.0f}, and sums in switches "
        f"{sums:.0f}, where {2 * tree_edges} are the bound.",
    )


@pytest.mark.parametrize("number", range(1, 8))
def test_the_points_of_each_study(number: int) -> None:
    """Those that run: places that mean the same are one."""
    path = studies_of("aggregation")[number]
    full, quick = (
        len(
            {
                (repr(point.configuration.canonical()), point.seed)
                for point in load_study(path, each, "virtual").points
            }
        )
        for each in (False, True)
    )
    said(DOCUMENT, f"| {number} | `{path.name}` | {full} | {quick} |")
