"""Rows of two phases with round numbers, as a trial leaves them, for the tests of table and figure."""

from __future__ import annotations

import statistics
from typing import Any

from gradbed.experiments.systems.aggregation.metrics import EVENTS

ROUNDS, WORKERS = 4, 8

Row = dict[str, Any]


def rounds_of(phase: str, round_time_s: float, job: int = 1) -> list[Row]:
    """The first is the fastest."""
    return [
        {
            "phase": phase,
            "job": job,
            "round": n,
            "round_time_s": round_time_s * (1 + n / 10),
            "accuracy": 0.5 + n / 10,
        }
        for n in range(ROUNDS)
    ]


def outcome(phase: str, packets: int, round_time_s: float, job: int = 1, **more: Any) -> Row:
    """A row of the table "summary"; packets: gradients into the server's link, of 1,000 bytes; 0: no server."""
    return {
        "phase": phase,
        "job": job,
        "workers": WORKERS,
        "rounds": ROUNDS,
        "values": 700,
        "gradient_bytes": 20_000,
        "has_server": packets > 0,
        "server_in_gradient_packets": packets,
        "server_in_gradient_bytes": 1000 * packets,
        "server_out_acknowledgement_packets": packets,
        "server_out_acknowledgement_bytes": 1000 * packets,
        "median_round_time_s": statistics.median(row["round_time_s"] for row in rounds_of(phase, round_time_s)),
        "least_round_time_s": None,
        "resends": 0,
        "direct_copies": 0,
        "accuracy": 0.8,
        "byte_hops": 0,
        **{f"slots_{name}": 0 for name in EVENTS},
        **more,
    }


BOTH = [outcome("parameter server", 640, 0.08), outcome("in-network", 80, 0.01)]
BOTH_ROUNDS = [*rounds_of("parameter server", 0.08), *rounds_of("in-network", 0.01)]
