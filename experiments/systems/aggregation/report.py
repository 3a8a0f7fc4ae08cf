"""The table at the end of the aggregation experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from experiments.systems.aggregation.outcome import BASELINES, EVENTS, ModeOutcome

TROUBLES = {
    "collision": "met another fragment of the job in the slot",
    "contention": "met another job in the slot",
    "exhaustion": "found all slots held",
    "overflow": "would have left int32",
}
"""Events that keep a switch from summing a gradient, in words of the table; shown where they occur."""


def ratio(outcomes: Sequence[ModeOutcome]) -> float:
    """Gradient bytes into the server's link: in-network over the server alone."""
    alone, in_network, *_ = outcomes
    return in_network.server_in.bytes / alone.server_in.bytes


def by_job(outcomes: Sequence[ModeOutcome]) -> list[list[ModeOutcome]]:
    """The outcomes of each job, the server alone first, then in-network, then the baselines."""
    jobs = dict.fromkeys(outcome.job for outcome in outcomes)
    return [[outcome for outcome in outcomes if outcome.job == job] for job in jobs]


def summary_rows(outcomes: Sequence[ModeOutcome]) -> list[dict[str, Any]]:
    """The same figures as in the table, a row for each mode and job, with the events in the switches' slots."""
    return [
        {
            "mode": o.mode,
            "job": o.job,
            "workers": o.workers,
            "rounds": o.rounds,
            "server_in_gradient_packets": o.server_in.packets,
            "server_in_gradient_bytes": o.server_in.bytes,
            "server_out_acknowledgement_packets": o.server_out.packets,
            "server_out_acknowledgement_bytes": o.server_out.bytes,
            "median_round_time_s": o.median_round_time_s,
            "resends": o.resends,
            "direct_copies": o.direct_copies,
            "accuracy": o.accuracy,
            "byte_hops": o.byte_hops,
            "ratio": None if o.mode in BASELINES else o.server_in.bytes / of_job[0].server_in.bytes,
            "ideal_ratio": None if o.mode in BASELINES else 1 / o.workers if o is not of_job[0] else 1.0,
            **{f"slots_{name}": o.events.get(name, 0) for name in EVENTS},
        }
        for of_job in by_job(outcomes)
        for o in of_job
    ]


def table(outcomes: Sequence[ModeOutcome], jobs: int = 1) -> Table:
    """A job's modes side by side, with the measured and the ideal ratio of in-network to the server alone."""
    alone = outcomes[0]
    which = f"job {alone.job} of {jobs}: " if jobs > 1 else ""
    result = Table(title=f"{which}{alone.workers} workers, {alone.rounds} rounds")
    result.add_column("")
    for outcome in outcomes:
        result.add_column(outcome.mode, justify="right")
    result.add_column("ratio", justify="right")
    result.add_column("ideal", justify="right")

    def row(name: str, values: Sequence[float], unit: str, digits: int = 1, ideal: str = "") -> None:
        quotient = f"{values[1] / values[0]:.4f}" if values[0] else "-"
        cells = [f"{value:,.{digits}f} {unit}".strip() for value in values]
        result.add_row(name, *cells, *["-"] * (len(outcomes) - len(cells)), quotient, ideal)

    def row_per_round(name: str, values: Sequence[int], unit: str) -> None:
        row(name, [value / alone.rounds for value in values], unit, ideal=f"{1 / alone.workers:.4f}")

    # Baselines have no server; they come last.
    served = [outcome for outcome in outcomes if outcome.mode not in BASELINES]

    row_per_round("gradients into the server's link, a round", [o.server_in.bytes for o in served], "B")
    row_per_round("gradient packets into it, a round", [o.server_in.packets for o in served], "")
    row_per_round("ACKs out of the server's link, a round", [o.server_out.bytes for o in served], "B")
    if len(served) < len(outcomes):
        row("bytes on all links, a round", [o.byte_hops / o.rounds for o in outcomes], "B", digits=0)
    row("round time, median", [1e3 * o.median_round_time_s for o in outcomes], "ms")
    row("gradient packets resent", [o.resends for o in outcomes], "", digits=0)
    if any(o.direct_copies for o in outcomes):
        row("gradients sent alone on request", [o.direct_copies for o in served], "", digits=0)
    for name, meaning in TROUBLES.items():
        if any(o.events.get(name) for o in outcomes):
            row(meaning, [o.events.get(name, 0) for o in served], "", digits=0)
    result.add_row("test accuracy", *(f"{100 * o.accuracy:.2f} %" for o in outcomes), "", "")
    return result
