"""What solving the linear program yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """An optimal solution of the linear program, all in bit/s.

    gamma_bps: the rate of every worker. y_bps[worker][switch]: what the worker sends to a programmable switch or to
    the server's ToR for summing; x_bps[worker]: what it sends to the server unaggregated; together they are
    gamma_bps. a_bps[switch], b_bps[switch]: sums that a programmable switch sends to the server, and to the server's
    ToR. f_bps: sums from the server's ToR to the server.
    """

    programmable: tuple[str, ...]
    gamma_bps: float
    y_bps: Mapping[str, Mapping[str, float]]
    x_bps: Mapping[str, float]
    a_bps: Mapping[str, float]
    b_bps: Mapping[str, float]
    f_bps: float
