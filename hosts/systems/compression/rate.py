"""How fast a worker sends, and when it sends less of its gradient because the network carries less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import MOST_FRAME_BYTES
from gradbed.hosts.systems.compression.transport import GradientMessage, News
from gradbed.hosts.transport.pacing import AimdRate, TokenBucket
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, forward_distance

# ---- Measuring the rate ----


@dataclass(frozen=True)
class RateReading:
    """The rate of an interval that ended at time_us; 0: nothing was acknowledged."""

    time_us: int
    rate_bps: float
    settled_bps: float | None = None
    """The rate of the interval before it, if this one is within the threshold of that."""
    sent_bps: float = 0.0
    """Rate at which the same packets were sent."""


class RateMonitor:
    """Begins anew with each gradient. Times are microseconds, of intervals by the caller's clock.

    A rate is bytes over the time between the last packets of two intervals, so that it does not matter where between
    two packets an interval ends. Of intervals without any nothing is settled: a link that stands still has no rate to
    plan by.
    """

    def __init__(self, interval_us: int, threshold: float) -> None:
        """threshold: how much two rates in turn may differ, relative to the first, to be taken for settled."""
        self._interval_us = interval_us
        self._threshold = threshold
        self.begin()

    def begin(self) -> None:
        self.due_us: int | None = None
        """When the present interval ends; None: nothing was acknowledged yet."""
        self._bytes = 0.0
        self._arrived_us = self._sent_us = 0
        """Of the last packet."""
        self._marked = (0, 0)
        """These at the end of the interval before."""
        self.initial_bps: float | None = None
        """The first reading that was not zero."""
        self._rate_bps = 0.0

    def acknowledged(self, size_bytes: float, now_us: int, *, arrived_us: int, sent_us: int) -> None:
        """arrived_us, sent_us: of the last packet that this is about, by the clocks of the server and the caller."""
        if self.due_us is None:
            # The first acknowledgement starts the clock; what it is about was sent before.
            self.due_us = now_us + self._interval_us
            self._marked = (arrived_us, sent_us)
        else:
            self._bytes += size_bytes
        self._arrived_us, self._sent_us = arrived_us, sent_us

    def read(self, now_us: int) -> RateReading | None:
        """The reading of the interval that is over; None: none is."""
        if self.due_us is None or now_us < self.due_us:
            return None
        while self.due_us <= now_us:
            self.due_us += self._interval_us
        ends_us = (self._arrived_us, self._sent_us)
        spans_us = [end_us - begun_us for end_us, begun_us in zip(ends_us, self._marked, strict=True)]
        rate_bps, sent_bps = (8e6 * self._bytes / span_us if span_us > 0 else 0.0 for span_us in spans_us)
        self._bytes, self._marked = 0.0, ends_us
        before_bps, self._rate_bps = self._rate_bps, rate_bps
        if self.initial_bps is None and rate_bps:
            self.initial_bps = rate_bps
        settled = bool(before_bps and rate_bps) and abs(rate_bps - before_bps) / before_bps <= self._threshold
        return RateReading(now_us, rate_bps, before_bps if settled else None, sent_bps)


# ---- Backlog ----


NOISE_FACTOR = 12
FORGET = 16


class Backlog:
    """The backlog that one worker infers from its round trips.

    A queue keeps every packet waiting that comes after it was built, jitter only some of them. So there is a backlog
    if the shortest round trip of an interval was longer than the shortest of all, by more than packets usually wait
    for each other, and by more than round trips vary. How much they vary is told by those that were shorter than the
    one before: a queue that grows makes none shorter.
    """

    def __init__(self, usual_us: int) -> None:
        """usual_us: as long may packets wait for those of other workers, though all are carried."""
        self._usual_us = usual_us
        self._least_us: int | None = None
        self._before_us: int | None = None
        self._last_us: int | None = None
        self._interval_us: int | None = None
        self._variation_us = 0.0

    def begin(self) -> None:
        """A gradient. The shortest round trip is that of this one and the one before: paths may become longer."""
        self._before_us, self._least_us = self._least_us, None
        self._last_us = self._interval_us = None

    def sample(self, round_trip_us: int) -> None:
        """Take in the round trip of a packet that was sent once."""
        if self._last_us is not None:
            shorter_us = max(0, self._last_us - round_trip_us)
            self._variation_us += (shorter_us - self._variation_us) / FORGET
        self._last_us = round_trip_us
        self._least_us = round_trip_us if self._least_us is None else min(self._least_us, round_trip_us)
        self._interval_us = round_trip_us if self._interval_us is None else min(self._interval_us, round_trip_us)

    def read(self) -> bool:
        """Return whether there was a backlog in the interval since the last time."""
        least_us, self._interval_us = self._interval_us, None
        shortest = [each for each in (self._least_us, self._before_us) if each is not None]
        if least_us is None:
            return False
        return least_us - min(shortest) > self._usual_us + NOISE_FACTOR * self._variation_us


# ---- Adaptation: when to send less, and how much less ----


@dataclass(frozen=True)
class Decision:
    """The part of a gradient to send from now on, and the rates that led to it."""

    ratio: float
    """Part of the bytes planned so far that is to be sent in all."""
    initial_bps: float
    rate_bps: float


@dataclass(frozen=True)
class Finding:
    """The result of an interval."""

    reading: RateReading
    backlog: bool = False
    """Whether packets were held up on their way."""
    grew: bool = False
    """Whether they arrived at a lower rate than they were sent at."""
    lasts: bool = False
    """Whether they have been held up for two intervals."""
    initial_bps: float | None = None
    """R0 of the rate that is watched."""


class RateAdaptation:
    """Watches one gradient after the other.

    The source's rule decides once for each gradient, at the first settled rate of the worker's own bytes, whatever it
    is. The corrected rule decides whenever a rate settles below that of the last plan (at first the initial rate) by
    more than twice the threshold, since either may be off by that: from then on the plan is what is left, at the rate
    that was found. It watches what the server gets of each worker that still sends, in the mean: what a worker loses
    to another is not lost. Only if that has not fallen it looks at its own bytes, and not even then where windows or
    marks make workers compete. And it takes a fall for the network's doing only if packets were held up on their way,
    and longer and longer: a worker that sends less by itself finds shorter queues.
    """

    def __init__(self, job: CompressionJob) -> None:
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
        self._last = Finding(RateReading(0, 0.0))
        self._level_bps: float | None = None
        self._decided = False
        self.readings: list[dict[str, Any]] = []

    @property
    def due_us(self) -> int | None:
        """Return when there is something to read."""
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
        """Return what the interval that is over has shown; None: none is."""
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
        ratio = corrected_ratio(sent_bytes, message.planned_bytes, *rates, self._job.ratio_floor, share_bytes)
        return Decision(ratio, level_bps, settled_bps)


# ---- Pacing ----


STEP_SHARE = 16
"""By so much of its even share a worker's rate grows."""


class Pace:
    """even and active: a share of the server's link; less while the network carries less, which is what arrives and
    somewhat below that, so that queues get shorter again. aimd: a rate that follows congestion marks."""

    def __init__(self, job: CompressionJob, index: int, now_us: int) -> None:
        self._job = job
        self._link_bps = job.server_link_bps or 0
        self._even_bps = max(1, self._link_bps // len(job.workers))
        self._step_bps = max(1, self._even_bps // STEP_SHARE)
        self._share_bps = self._even_bps
        self.bucket: TokenBucket | None = None
        """None: nobody paces."""
        if job.pacing != "none":
            self.bucket = TokenBucket(self._even_bps, MOST_FRAME_BYTES, now_us)
        self._turn_us = 8_000_000 * MOST_FRAME_BYTES * index // (len(job.workers) * self._even_bps)
        self.aimd: AimdRate | None = None
        if job.pacing == "aimd":
            self.aimd = AimdRate(
                self._even_bps, self._step_bps, self._link_bps, step_bps=self._step_bps, period_us=job.interval_us
            )

    def begin(self, now_us: int) -> None:
        """Spread the beginnings of workers evenly over the time of a packet, since all begin a gradient together."""
        if self.bucket is None or self.aimd is not None:
            return
        self._share_bps = self._even_bps
        self.bucket.set_rate(self._even_bps, now_us)
        self.bucket.empty(now_us, wait_us=self._turn_us)

    def acknowledged(self, sequence: int, next_new: int, active: int, now_us: int, *, marked: bool) -> None:
        """active: workers that are still sending."""
        if self.bucket is None:
            return
        if self.aimd is not None:
            self.aimd.acknowledged(sequence, next_new, marked=marked, now_us=now_us)
            self._set_rate(self.bucket, self.aimd.rate_bps, now_us)
        elif self._job.pacing == "active":
            before_bps, self._share_bps = self._share_bps, max(1, self._link_bps // max(1, active))
            if self._share_bps != before_bps:
                self._set_rate(self.bucket, self.bucket.rate_bps * self._share_bps // before_bps, now_us)

    def read(self, finding: Finding, now_us: int) -> None:
        if self.bucket is None or self.aimd is not None:
            return
        rate_bps = self.bucket.rate_bps
        if not finding.backlog:
            self._set_rate(self.bucket, min(self._share_bps, rate_bps + self._step_bps), now_us)
        elif finding.grew:
            found_bps = int((1 - self._job.settled_within) * finding.reading.rate_bps)
            self._set_rate(self.bucket, min(rate_bps, found_bps), now_us)

    @staticmethod
    def _set_rate(bucket: TokenBucket, rate_bps: int, now_us: int) -> None:
        if rate_bps != bucket.rate_bps:
            bucket.set_rate(max(1, rate_bps), now_us)


# ---- The ratio when the rate has fallen ----


def source_ratio(sent: float, total: float, initial_rate: float, rate: float) -> float:
    """Return the ratio as published: (sent + remaining x (R0 - R) / R0) / total.

    sent, total: bytes of the gradient that have been sent, and all of them. An unchanged rate gives sent / total, so
    that nothing more is sent; the more the rate falls, the more is kept. Not limited to 0 to 1.
    """
    if not total:
        return 1.0
    return (sent + (total - sent) * (initial_rate - rate) / initial_rate) / total


SUM_MOST = 0.5
"""Of what the rate would still carry of a gradient, the part that is given up at most for the sum."""


def corrected_ratio(
    sent: float, total: float, initial_rate: float, rate: float, floor: float = 0.0, sum_share: float = 0.0
) -> float:
    """(sent + remaining x min(1, R / R0)) / total, of what is left at least the part `floor`.

    Between sent / total and 1, never less for a higher rate, and 1 exactly if R >= R0 or nothing is left. At rate R0
    until now and R from now on, the gradient takes total / R0, whatever R is.

    sum_share: bytes that come back in place of a worker's gradient, over the link that is slower now. What they take
    longer the gradient is to take less, so that both together take as long as they would have; but no more than half
    of what is sent otherwise is left out for them.
    """
    remaining = total - sent
    if remaining <= 0 or rate >= initial_rate:
        return 1.0
    part = rate / initial_rate
    kept = max((1 - SUM_MOST) * remaining * part, remaining * part - sum_share * (1 - part))
    return (sent + max(floor * remaining, kept)) / total
