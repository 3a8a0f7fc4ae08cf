"""What a run of a PyTorch script shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.tables.units import time_text

Row = Mapping[str, Any]

VALUE_BYTES = 4


def script_lines(point: Row, rounds: Sequence[Row]) -> list[str]:
    """What the gradients of a script did. point: its row of the points table."""
    if not rounds:
        return ["the script registered no model, so nothing went through the switches"]
    values = rounds[0]["values"]
    lines = [
        f"{len(rounds)} gradients of {values} values summed, {time_text(point['iteration_time_s'])} in the median",
        f"{point['wire_bytes']:.0f} B of a worker's gradient sent, headers and all, "
        f"{point['wire_bytes'] / (VALUE_BYTES * values):.4f} of its {VALUE_BYTES * values} B",
    ]
    if clipped := sum(each["clipped"] for each in rounds):
        lines.append(f"{clipped} values did not fit, or were no numbers, and were clipped")
    return lines
