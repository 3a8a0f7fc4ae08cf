"""Two outcomes with round numbers, for the tests of table and figure."""

from experiments.accounting import Tally
from experiments.systems.aggregation.counts import ModeOutcome, RoundOutcome


def outcome(mode: str, packets: int, round_time_s: float, job: int = 1) -> ModeOutcome:
    return ModeOutcome(
        mode=mode,
        job=job,
        workers=8,
        per_round=tuple(
            RoundOutcome(n, round_time_s * (1 + n / 10), 0.5 + n / 10, 1.0 / (n + 1), 0, f"{n:064x}")
            for n in range(4)
        ),
        server_in=Tally(packets, packets * 1000),
        server_out=Tally(packets, packets * 1000),
        accounts=(),
        resends=0,
        direct_copies=0,
        events={},
        mismatches=(),
    )


BOTH = [outcome("parameter server", 640, 0.08), outcome("in-network", 80, 0.01)]
