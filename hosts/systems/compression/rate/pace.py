"""The rate at which a worker sends: its share of the server's link, or what it finds that it has."""

from __future__ import annotations

from gradbed.hosts.systems.compression.description import JobDescription
from gradbed.hosts.systems.compression.packets.frames import MOST_FRAME_BYTES
from gradbed.hosts.systems.compression.rate.rate_adaptation import Finding
from gradbed.hosts.transport.pacing import TokenBucket
from gradbed.hosts.transport.rate_control import AimdRate

STEP_SHARE = 16
"""By so much of its even share a worker's rate grows."""


class Pace:
    """even and active: a share of the server's link; less while the network carries less, which is what arrives and
    somewhat below that, so that queues get shorter again. aimd: a rate that follows congestion marks."""

    def __init__(self, job: JobDescription, index: int, now_us: int) -> None:
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
        """All workers begin a gradient together: at even distances within the time of a packet they stay out of each
        other's way."""
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
