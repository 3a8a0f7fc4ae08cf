"""When a worker sends less of its gradient, and how much less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.hosts.systems.compression.description import JobDescription
from gradbed.hosts.systems.compression.packets.frames import MOST_FRAME_BYTES
from gradbed.hosts.systems.compression.packets.gradient_message import GradientMessage
from gradbed.hosts.systems.compression.packets.outgoing import News
from gradbed.hosts.systems.compression.rate.backlog import Backlog
from gradbed.hosts.systems.compression.rate.rate_monitor import RateMonitor, Reading
from gradbed.hosts.systems.compression.ratio import repaired_ratio, source_ratio
from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS, forward_distance


@dataclass(frozen=True)
class Decision:
    """ratio: of the bytes that were planned so far, the part to be sent in all."""

    ratio: float
    initial_bps: float
    rate_bps: float


@dataclass(frozen=True)
class Finding:
    """Of an interval. backlog: packets were held up on their way. grew: they arrived at a lower rate than they were
    sent at. lasts: they have been held up for two intervals. initial_bps: R0 of the rate that is watched."""

    reading: Reading
    backlog: bool = False
    grew: bool = False
    lasts: bool = False
    initial_bps: float | None = None


class RateAdaptation:
    """Watches one gradient after the other.

    The source's rule decides once for each gradient, at the first settled rate of the worker's own bytes, whatever it
    is. The repaired rule decides whenever a rate settles below that of the last plan (at first the initial rate) by
    more than twice the threshold, since either may be off by that: from then on the plan is what is left, at the rate
    that was found. It watches what the server gets of each worker that still sends, in the mean: what a worker loses
    to another is not lost. Only if that has not fallen it looks at its own bytes, and not even then where windows or
    marks make workers compete. And it takes a fall for the network's doing only if packets were held up on their way,
    and longer and longer: a worker that sends less by itself finds shorter queues.
    """

    def __init__(self, job: JobDescription) -> None:
        self._job = job
        self.own = RateMonitor(job.interval_us, job.settled_within)
        self.mean = RateMonitor(job.interval_us, job.settled_within)
        """Of all workers that still send."""
        link_bps = job.server_link_bps
        self._backlog = Backlog(8_000_000 * MOST_FRAME_BYTES * len(job.workers) // link_bps if link_bps else 0)
        self._competes = job.pacing in ("none", "aimd")
        self._arrived = (0, 0)
        """Bytes and time of the server, of its last word."""
        self._highest_bps = [0.0, 0.0]
        """Initial rates of the mean and of its own."""
        self.begin()

    def begin(self) -> None:
        """A gradient is handed over."""
        self.own.begin()
        self.mean.begin()
        self._backlog.begin()
        self._last = Finding(Reading(0, 0.0))
        self._level_bps: float | None = None
        self._decided = False
        self.readings: list[dict[str, Any]] = []

    @property
    def due_us(self) -> int | None:
        """When there is something to read."""
        return self.own.due_us

    def acknowledged(self, news: News, frame: Any, now_us: int) -> None:
        """frame: of gradbed.hosts.systems.compression.frames.ACKNOWLEDGEMENT."""
        if news.round_trip_us is not None:
            self._backlog.sample(news.round_trip_us)
        bytes_before, before_us = self._arrived
        passed_us = forward_distance(before_us % PACKET_NUMBERS, int(frame["time_us"]))
        if passed_us >= PACKET_NUMBERS // 2:
            return  # overtaken by a later one
        arrived_bytes, arrived_us = int(frame["arrived_bytes"]), before_us + passed_us
        self._arrived = (arrived_bytes, arrived_us)
        of_each = forward_distance(bytes_before, arrived_bytes) / max(1, int(frame["active"]))
        for monitor, size_bytes in ((self.own, news.size_bytes), (self.mean, of_each)):
            monitor.acknowledged(size_bytes, now_us, arrived_us=arrived_us, sent_us=news.sent_us)

    def read(self, now_us: int) -> Finding | None:
        """What the interval that is over has shown; None: none is."""
        own, mean = self.own.read(now_us), self.mean.read(now_us)
        if own is None or mean is None:
            return None
        below = 1 - self._job.settled_within
        is_fallen = 0 < mean.rate_bps < below * below * (self._initial_bps(is_own=False) or 0)
        watched = own if self._job.ratio == "source" or not (is_fallen or self._competes) else mean
        backlog, grew, before = self._backlog.read(), 0 < own.rate_bps < below * own.sent_bps, self._last
        lasts = backlog and before.backlog and (grew or before.grew)
        self._last = Finding(watched, backlog, grew, lasts, self._initial_bps(watched is own))
        return self._last

    def _initial_bps(self, is_own: bool) -> float | None:
        """R0, once it is known. All workers together never have more than their link."""
        first_bps = (self.own if is_own else self.mean).initial_bps
        if first_bps is None:
            return None
        if not is_own and self._job.server_link_bps is not None:
            first_bps = min(first_bps, self._job.server_link_bps / len(self._job.workers))
        if self._job.initial_rate == "iteration":
            return first_bps
        self._highest_bps[is_own] = max(self._highest_bps[is_own], first_bps)
        return self._highest_bps[is_own]

    def decide(self, finding: Finding, message: GradientMessage, sent_bytes: int) -> Decision | None:
        """sent_bytes: acknowledged of the gradient."""
        decision = self._decision(finding, message, sent_bytes)
        reading = finding.reading
        self.readings.append(
            {
                "time_us": reading.time_us,
                "rate_bps": reading.rate_bps,
                "settled": reading.settled_bps is not None,
                "backlog": finding.backlog,
                "ratio": None if decision is None else decision.ratio,
            }
        )
        return decision

    def _decision(self, finding: Finding, message: GradientMessage, sent_bytes: int) -> Decision | None:
        settled_bps, initial_bps = finding.reading.settled_bps, finding.initial_bps
        if settled_bps is None or initial_bps is None or self._job.ratio == "none":
            return None
        if self._job.ratio == "source":
            if self._decided:
                return None
            self._decided = True
            ratio = source_ratio(sent_bytes, message.planned_bytes, initial_bps, settled_bps)
            return Decision(ratio, initial_bps, settled_bps)
        level_bps = initial_bps if self._level_bps is None else self._level_bps
        highest_bps = max(settled_bps, finding.reading.rate_bps)
        if not finding.lasts or highest_bps >= level_bps * (1 - 2 * self._job.settled_within):
            return None
        self._level_bps = settled_bps
        share_bytes = message.sum_bytes / len(self._job.workers)
        rates = (level_bps, settled_bps)
        ratio = repaired_ratio(sent_bytes, message.planned_bytes, *rates, self._job.ratio_floor, share_bytes)
        return Decision(ratio, level_bps, settled_bps)
