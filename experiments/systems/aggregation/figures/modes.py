"""What the figures of aggregation have in common: who sums, and units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NUMBERS = {"parameter server": 0, "in-network": 1, "ring": 2, "gloo": 3}
"""Of colours and markers, the same in all figures."""


def mode(row: Mapping[str, Any]) -> str:
    """Who sums at a point whose sweep has workload.exchange and switches.placement."""
    if row["workload.exchange"] != "server":
        return str(row["workload.exchange"])
    return "parameter server" if row["switches.placement"] == "none" else "in-network"


def in_link_rates(row: Mapping[str, Any], name: str) -> float | None:
    """A rate of the points table in units of the link rate."""
    value = row.get(name)
    return None if value is None else float(value) / float(row["link_rate_bps"])
