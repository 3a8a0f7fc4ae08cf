"""When a worker sends less of its gradient, and how much less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hosts.systems.compression.description import JobDescription
from hosts.systems.compression.rate_monitor import RateMonitor
from hosts.systems.compression.ratio import repaired_ratio, source_ratio


@dataclass(frozen=True)
class Decision:
    """ratio: of the bytes that were planned so far, the part to be sent in all."""

    ratio: float
    initial_bps: float
    rate_bps: float


class RateAdaptation:
    """Watches one gradient after the other.

    The source's rule decides once for each gradient, at the first settled rate, whatever it is. The repaired rule
    decides whenever a rate settles below that of the last plan (at first the initial rate) by more than twice the
    threshold, since either may be off by that: from then on the plan is what is left, at the rate that was found.
    """

    def __init__(self, job: JobDescription) -> None:
        self._job = job
        self.monitor = RateMonitor(job.interval_us, job.settled_within)
        self._highest_bps = 0.0
        self._level_bps: float | None = None
        self._decided = False
        self.readings: list[dict[str, Any]] = []

    def begin(self, now_us: int) -> None:
        """A gradient is handed over."""
        self.monitor.begin(now_us)
        self._level_bps = None
        self._decided = False
        self.readings = []

    def decide(self, now_us: int, sent_bytes: int, planned_bytes: int) -> Decision | None:
        """Take a reading if one is due. sent_bytes: acknowledged of the gradient."""
        reading = self.monitor.read(now_us)
        if reading is None:
            return None
        decision = self._decision(reading.settled_bps, sent_bytes, planned_bytes)
        self.readings.append(
            {
                "time_us": reading.time_us,
                "rate_bps": reading.rate_bps,
                "settled": reading.settled_bps is not None,
                "ratio": None if decision is None else decision.ratio,
            }
        )
        return decision

    def _initial_bps(self) -> float | None:
        """R0, once it is known."""
        first_bps = self.monitor.initial_bps
        if first_bps is None or self._job.initial_rate == "iteration":
            return first_bps
        self._highest_bps = max(self._highest_bps, first_bps)
        return self._highest_bps

    def _decision(self, settled_bps: float | None, sent_bytes: int, planned_bytes: int) -> Decision | None:
        initial_bps = self._initial_bps()
        if settled_bps is None or initial_bps is None or self._job.ratio == "none":
            return None
        if self._job.ratio == "source":
            if self._decided:
                return None
            self._decided = True
            ratio = source_ratio(sent_bytes, planned_bytes, initial_bps, settled_bps)
            return Decision(ratio, initial_bps, settled_bps)
        level_bps = initial_bps if self._level_bps is None else self._level_bps
        if settled_bps >= level_bps * (1 - 2 * self._job.settled_within):
            return None
        self._level_bps = settled_bps
        ratio = repaired_ratio(sent_bytes, planned_bytes, level_bps, settled_bps, self._job.ratio_floor)
        return Decision(ratio, level_bps, settled_bps)
