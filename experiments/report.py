"""The table at the end of the aggregation experiment."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from experiments.outcome import ModeOutcome


def ratio(outcomes: Sequence[ModeOutcome]) -> float:
    """Gradient bytes into the server's link: in-network over the server alone."""
    alone, in_network = outcomes
    return in_network.server_in.bytes / alone.server_in.bytes


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
