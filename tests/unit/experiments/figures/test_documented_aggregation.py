"""What docs/figures.md says of aggregation's figures, computed from their data."""

from __future__ import annotations

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
