"""Measures of realtime validity, and the verdict on them; docs/experiments.md says why the limits are as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

# ---- What was measured ----


VerdictWord = Literal["simulated", "valid", "unknown", "degraded", "invalid"]
"""simulated: the virtual clock, no machine involved. unknown: too little could be measured to say."""


GRAVITY: Sequence[VerdictWord] = ("simulated", "valid", "unknown", "degraded", "invalid")
"""From the best verdict to the worst."""


@dataclass(frozen=True)
class ValidityMeasures:
    """Measures of whether the machine kept up; None: not measured.

    BMv2 keeps no timers, for example, and a link may never have been backlogged for long.
    """

    duration_s: float = 0.0
    """Duration of the measured phase."""
    machine_busy: float | None = None
    """Share of all processors that was used, 0 to 1."""
    machine_stolen: float | None = None
    """Share of all processors that a hypervisor took away."""
    machine_others: float | None = None
    """Share of all processors that programs used which are no part of the run."""
    switch_busy: float | None = None
    """Share of one processor that the busiest thread of any switch process used."""
    switch_waiting: float | None = None
    """Share of the time in which the worst such thread was runnable without a processor."""
    agent_busy: float | None = None
    """As switch_busy, of agents."""
    agent_waiting: float | None = None
    """As switch_waiting, of agents."""
    agent_wait_us: float | None = None
    """Mean scheduling delay, over all agents."""
    link_achieved: float | None = None
    """Rate achieved over rate configured of the link for which it is furthest from 1, of those that were backlogged
    long enough."""
    links_backlogged: int = 0
    """How many links were backlogged long enough."""
    late_mean_us: float | None = None
    """Mean lateness of the link model's timers."""
    late_p99_us: float | None = None
    """99th percentile of that lateness."""
    late_max_us: float | None = None
    """Its maximum."""
    packet_time_us: float | None = None
    """Transmission time of a full packet on the slowest link that has a rate, to compare with."""
    socket_drops: int = 0
    """Frames that packet sockets (switch ports, agents) lost for want of buffer."""
    socket_packets: int = 0
    """Frames that were offered to these sockets."""


@dataclass(frozen=True)
class ValidityReport:
    """Measures, and the verdict on them with its reasons, the worst first."""

    measures: ValidityMeasures = field(default_factory=ValidityMeasures)
    verdict: VerdictWord = "unknown"
    reasons: Sequence[str] = ()

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table of trials: every measure with the prefix "validity_", the verdict, and the
        reasons as text."""
        return {
            "verdict": self.verdict,
            "verdict_reasons": "; ".join(self.reasons),
            **{f"validity_{name}": value for name, value in asdict(self.measures).items()},
        }

    @classmethod
    def of_columns(cls, row: Mapping[str, Any]) -> ValidityReport:
        """Make a report of the columns that `columns` returns."""
        names = {each.name for each in fields(ValidityMeasures)}
        measures = ValidityMeasures(**{name: row[f"validity_{name}"] for name in names})
        return cls(measures, row["verdict"], tuple(filter(None, row["verdict_reasons"].split("; "))))


# ---- The verdict ----


OTHERS = "of all processors other programs used"
NOTED_OTHERS = 0.1
"""Share of all processors from which on other programs are named, if another rule is broken."""


@dataclass(frozen=True)
class Limit:
    """A rule of the verdict."""

    what: str
    """What is measured, for messages."""
    value: Callable[[ValidityMeasures], float | None]
    """Returns the value, or None if it cannot be told."""
    degraded: float
    """Value from which on a run is degraded."""
    invalid: float
    """Value from which on a run is invalid."""
    unit: str = "%"

    def words(self, value: float) -> str:
        if self.unit == "%":
            return f"{self.what} {100 * value:.3g} % (limit {100 * self.degraded:g} %)"
        return f"{self.what} {value:.3g} {self.unit} (limit {self.degraded:g})"


def _in_packets(name: str) -> Callable[[ValidityMeasures], float | None]:
    """Return a time in microseconds as packet times."""

    def value(measures: ValidityMeasures) -> float | None:
        time_us: float | None = getattr(measures, name)
        return None if time_us is None or not measures.packet_time_us else time_us / measures.packet_time_us

    return value


def _rate_missing(measures: ValidityMeasures) -> float | None:
    return None if measures.link_achieved is None else abs(1.0 - measures.link_achieved)


def _dropped(measures: ValidityMeasures) -> float | None:
    return measures.socket_drops / max(1, measures.socket_packets) if measures.socket_drops else None


def _own(measures: ValidityMeasures) -> float | None:
    return None if measures.machine_busy is None else measures.machine_busy - (measures.machine_others or 0.0)


LIMITS = (
    Limit("packets lost in sockets for want of buffer:", _dropped, 0.0, 0.001),
    Limit("a backlogged link's rate is off by", _rate_missing, 0.03, 0.10),
    Limit("1 % of link events were late by at least", _in_packets("late_p99_us"), 1.0, 8.0, "packet times"),
    Limit("link events were late on average by", _in_packets("late_mean_us"), 0.25, 1.0, "packet times"),
    Limit("a switch's busiest thread used", lambda m: m.switch_busy, 0.75, 0.95),
    Limit("a switch's thread waited for a processor in", lambda m: m.switch_waiting, 0.10, 0.30),
    Limit("the busiest agent used", lambda m: m.agent_busy, 0.75, 0.95),
    Limit("the agent that waited most for a processor did so in", lambda m: m.agent_waiting, 0.30, 0.60),
    Limit("agents waited for a processor on average", _in_packets("agent_wait_us"), 0.5, 2.0, "packet times"),
    Limit("of all processors the run itself used", _own, 0.90, 0.98),
    Limit("a hypervisor took away", lambda m: m.machine_stolen, 0.02, 0.10),
    Limit(OTHERS, lambda m: m.machine_others, 0.30, math.inf),
)
"""From the gravest to the least; each is checked on its own."""


NO_EVIDENCE = "no link has a rate, or none of its timers was measured: nothing shows whether the machine kept up"


def judge(measures: ValidityMeasures) -> ValidityReport:
    """Return the verdict of the worst rule; reasons name every rule that was broken, invalidating ones first, and at
    last other programs, if they may be the cause. Where no rule is broken, but neither the timers of links nor a
    backlogged link tell whether the machine kept up, the verdict is unknown."""
    broken: dict[VerdictWord, list[str]] = {"invalid": [], "degraded": []}
    for limit in LIMITS:
        value = limit.value(measures)
        if value is None:
            continue
        if value >= limit.invalid:
            broken["invalid"].append(limit.words(value))
        elif value >= limit.degraded:
            broken["degraded"].append(limit.words(value))
    verdict: VerdictWord = "invalid" if broken["invalid"] else "degraded" if broken["degraded"] else "valid"
    reasons = [*broken["invalid"], *broken["degraded"]]
    if verdict == "valid" and _in_packets("late_p99_us")(measures) is None and measures.link_achieved is None:
        return ValidityReport(measures, "unknown", (NO_EVIDENCE,))
    others = measures.machine_others or 0.0
    if reasons and others >= NOTED_OTHERS and not any(reason.startswith(OTHERS) for reason in reasons):
        reasons.append(f"other programs used {100 * others:.0f} % of the processors")
    return ValidityReport(measures, verdict, tuple(reasons))


def worst_report(reports: Sequence[ValidityReport]) -> ValidityReport:
    """Return the report with the gravest verdict, the first of several."""
    return max(reports, key=lambda report: GRAVITY.index(report.verdict))
