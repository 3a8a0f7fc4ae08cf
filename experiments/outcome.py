"""What one mode of the aggregation experiment found."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from experiments.accounting import HostAccount, Tally

EVENTS = (
    "claimed",
    "added",
    "completed",
    "duplicate",
    "collision",
    "stale",
    "overlap",
    "resend_summed",
    "resend_single",
    "released",
    "reclaimed",
)
"""By index in the counter `events` of p4src/include/slots.p4."""


@dataclass(frozen=True)
class RoundOutcome:
    """One round over all workers. round_time_s is the slowest worker's, accuracy the first worker's."""

    round: int
    round_time_s: float
    accuracy: float
    loss: float
    clipped: int
    weights_sha256: str


@dataclass(frozen=True)
class ModeOutcome:
    """One mode's run. server_in and server_out are the switch's counts of the server's access link:
    gradients towards the server, acknowledgements from it."""

    mode: str
    workers: int
    per_round: tuple[RoundOutcome, ...]
    server_in: Tally
    server_out: Tally
    accounts: tuple[HostAccount, ...]
    resends: int
    events: dict[str, int]
    mismatches: tuple[str, ...]

    @property
    def rounds(self) -> int:
        return len(self.per_round)

    @property
    def median_round_time_s(self) -> float:
        return statistics.median(row.round_time_s for row in self.per_round)

    @property
    def accuracy(self) -> float:
        return self.per_round[-1].accuracy
