"""What points of compression studies are called in figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradbed.experiments.plotting.style import COLOURS

Row = Mapping[str, Any]

PACING = {"none": "unpaced", "even": "B1/N", "active": "B1/active", "aimd": "AIMD"}


def variant(row: Row) -> str:
    """Of a point whose sweep has pacing, rule and compressor: what it does about congestion."""
    pacing, rule, compress = row["transport.pacing"], row["ratio.rule"], row["compression.compress"]
    if not row["faults"]:
        return f"undisturbed, {PACING[pacing]}"
    if row.get("transport.protocol") == "tcp":
        return "TCP of the kernel, a sum for each"
    if compress != "none":
        return f"{compress}, {PACING[pacing]}"
    if rule == "none":
        return "neither" if pacing == "none" else f"pacing alone ({PACING[pacing]})"
    if rule == "source":
        return f"the source, to the letter, {PACING[pacing]}"
    return "compression alone" if pacing == "none" else f"repaired, {PACING[pacing]}"


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
