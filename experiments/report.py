"""The table at the end of the aggregation experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from experiments.outcome import EVENTS, ModeOutcome


def ratio(outcomes: Sequence[ModeOutcome]) -> float:
    """Gradient bytes into the server's link: in-network over the server alone."""
    alone, in_network = outcomes
    return in_network.server_in.bytes / alone.server_in.bytes


def summary_rows(outcomes: Sequence[ModeOutcome]) -> list[dict[str, Any]]:
    """The same figures as in the table, a row for each mode, with the events in the switches' slots."""
    return [
        {
            "mode": o.mode,
            "workers": o.workers,
            "rounds": o.rounds,
            "server_in_gradient_packets": o.server_in.packets,
            "server_in_gradient_bytes": o.server_in.bytes,
            "server_out_acknowledgement_packets": o.server_out.packets,
            "server_out_acknowledgement_bytes": o.server_out.bytes,
            "median_round_time_s": o.median_round_time_s,
            "resends": o.resends,
            "accuracy": o.accuracy,
            "ratio": o.server_in.bytes / outcomes[0].server_in.bytes,
            "ideal_ratio": 1 / o.workers if o is not outcomes[0] else 1.0,
            **{f"slots_{name}": o.events.get(name, 0) for name in EVENTS},
        }
        for o in outcomes
    ]


def table(outcomes: Sequence[ModeOutcome]) -> Table:
    """Both modes side by side, with the measured and the ideal ratio."""
    alone = outcomes[0]
    result = Table(title=f"{alone.workers} workers, {alone.rounds} rounds")
    result.add_column("")
    for outcome in outcomes:
        result.add_column(outcome.mode, justify="right")
    result.add_column("ratio", justify="right")
    result.add_column("ideal", justify="right")

    def row(name: str, values: Sequence[float], unit: str, digits: int = 1, ideal: str = "") -> None:
        quotient = f"{values[1] / values[0]:.4f}" if values[0] else "-"
        result.add_row(name, *(f"{value:,.{digits}f} {unit}".strip() for value in values), quotient, ideal)

    def row_per_round(name: str, values: Sequence[int], unit: str) -> None:
        row(name, [value / alone.rounds for value in values], unit, ideal=f"{1 / alone.workers:.4f}")

    row_per_round("gradients into the server's link, a round", [o.server_in.bytes for o in outcomes], "B")
    row_per_round("gradient packets into it, a round", [o.server_in.packets for o in outcomes], "")
    row_per_round("ACKs out of the server's link, a round", [o.server_out.bytes for o in outcomes], "B")
    row("round time, median", [1e3 * o.median_round_time_s for o in outcomes], "ms")
    row("gradient packets resent", [o.resends for o in outcomes], "", digits=0)
    result.add_row("test accuracy", *(f"{100 * o.accuracy:.2f} %" for o in outcomes), "", "")
    return result
