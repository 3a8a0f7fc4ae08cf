"""What one job found in one mode of the aggregation experiment."""

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
    "contention",
    "exhaustion",
    "overflow",
    "repeated",
)
"""By index in a job's cells of the counter `events`; what each means is in p4src/include/events.p4."""

EVENT_CELLS = 16
"""Cells of the counter `events` for each job."""
EVENT_JOBS = 64
"""A job's cells are those of its number modulo this."""


def event_at(index: int) -> tuple[int, str]:
    """The job, modulo EVENT_JOBS, and the event that a cell of the counter `events` counts."""
    return index // EVENT_CELLS, EVENTS[index % EVENT_CELLS]


@dataclass(frozen=True)
class RoundOutcome:
    """One round over all workers. round_time_s is the slowest worker's, accuracy the first worker's."""

    round: int
    round_time_s: float
    accuracy: float
    loss: float
    clipped: int
    weights_sha256: str


BASELINES = ("ring", "gloo")
"""Modes in which the workers sum without a server."""


@dataclass(frozen=True)
class ModeOutcome:
    """One job's run in one mode. server_in and server_out are the switch's counts of the server's access link:
    gradients towards the server, acknowledgements from it. events: of the job, in the slots of all switches.
    direct_copies: gradients that the server asked for alone. byte_hops: bytes that all links carried meanwhile, for
    all jobs together. Modes without a server have none of the server's counts."""

    mode: str
    job: int
    workers: int
    per_round: tuple[RoundOutcome, ...]
    server_in: Tally
    server_out: Tally
    accounts: tuple[HostAccount, ...]
    resends: int
    direct_copies: int
    events: dict[str, int]
    mismatches: tuple[str, ...]
    byte_hops: int = 0

    @property
    def rounds(self) -> int:
        return len(self.per_round)

    @property
    def median_round_time_s(self) -> float:
        return statistics.median(row.round_time_s for row in self.per_round)

    @property
    def accuracy(self) -> float:
        return self.per_round[-1].accuracy
