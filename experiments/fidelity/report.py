"""What was measured of a run's fidelity, as one flat value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

VerdictWord = Literal["model", "valid", "unknown", "doubtful", "invalid"]
"""model: the virtual clock, no machine involved. unknown: too little could be measured to say."""


GRAVITY: Sequence[VerdictWord] = ("model", "valid", "unknown", "doubtful", "invalid")
"""From the best verdict to the worst."""


@dataclass(frozen=True)
class FidelityMeasures:
    """None: not measured here (BMv2 keeps no timers; a link was never backlogged for long).

    duration_s: of the measured phase. machine_busy, machine_stolen, machine_others: share of all processors, 0 to 1,
    used at all, taken by a hypervisor, and used by programs that are no part of the run.
    switch_busy: share of one processor that the busiest thread of any switch process used; switch_waiting: share of
    the time in which that role's worst thread was ready to run but had no processor; agent_busy and agent_waiting
    likewise; agent_wait_us: mean wait for a processor, over all agents.
    link_achieved: of the links that were backlogged long enough, the rate achieved over the rate configured that is
    furthest from 1.
    late_mean_us, late_p99_us, late_max_us: how late the link model's timers were; packet_time_us: what one full
    packet takes on the slowest link that has a rate, to compare with.
    socket_drops, socket_packets: frames that packet sockets (switch ports, agents) lost for want of buffer, of how
    many.
    """

    duration_s: float = 0.0
    machine_busy: float | None = None
    machine_stolen: float | None = None
    machine_others: float | None = None
    switch_busy: float | None = None
    switch_waiting: float | None = None
    agent_busy: float | None = None
    agent_waiting: float | None = None
    agent_wait_us: float | None = None
    link_achieved: float | None = None
    links_backlogged: int = 0
    late_mean_us: float | None = None
    late_p99_us: float | None = None
    late_max_us: float | None = None
    packet_time_us: float | None = None
    socket_drops: int = 0
    socket_packets: int = 0


@dataclass(frozen=True)
class FidelityReport:
    """Measures, and what they say: a verdict with its reasons, the worst first."""

    measures: FidelityMeasures = field(default_factory=FidelityMeasures)
    verdict: VerdictWord = "unknown"
    reasons: Sequence[str] = ()

    def columns(self) -> dict[str, Any]:
        """For the points table: every measure with the prefix "fidelity_", the verdict, and the reasons as text."""
        return {
            "verdict": self.verdict,
            "verdict_reasons": "; ".join(self.reasons),
            **{f"fidelity_{name}": value for name, value in asdict(self.measures).items()},
        }

    @classmethod
    def of_columns(cls, row: Mapping[str, Any]) -> FidelityReport:
        """The inverse of columns."""
        names = {each.name for each in fields(FidelityMeasures)}
        measures = FidelityMeasures(**{name: row[f"fidelity_{name}"] for name in names})
        return cls(measures, row["verdict"], tuple(filter(None, row["verdict_reasons"].split("; "))))
