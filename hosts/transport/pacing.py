"""Sending at a rate: a token bucket on the caller's clock.

Bits flow into the bucket at the rate, and a frame leaves when the bucket holds all of its bits. A bucket that
nobody waits for holds one burst. One that somebody does wait for goes on filling for a while, so that who wakes up
late makes up for it: with a kernel's timers of a millisecond a bucket of one frame would lose half of its rate. All
arithmetic is in integers, so that no rounding adds up."""

from __future__ import annotations

from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, forward_distance

CATCH_UP_US = 5_000
"""How late a sender that waits for its turn may wake up without losing rate."""

_MICRO = 1_000_000


class TokenBucket:
    """Times are microseconds of the caller's clock, sizes bytes of whole Ethernet frames."""

    def __init__(self, rate_bps: int, burst_bytes: int, now_us: int, *, catch_up_us: int = CATCH_UP_US) -> None:
        """burst_bytes: what may leave at once after a pause; at least the longest frame. The bucket starts full."""
        if rate_bps < 1 or burst_bytes < 1:
            raise ValueError(f"a bucket needs a rate and a size, got {rate_bps} bit/s and {burst_bytes} bytes")
        self._rate_bps = rate_bps
        self._burst = 8 * burst_bytes * _MICRO
        self._catch_up_us = catch_up_us
        self._level = self._burst  # in millionths of a bit
        self._now_us = now_us
        self._awaited = False

    @property
    def rate_bps(self) -> int:
        return self._rate_bps

    def set_rate(self, rate_bps: int, now_us: int) -> None:
        """Set the rate from now on."""
        if rate_bps < 1:
            raise ValueError(f"a bucket needs a rate, got {rate_bps} bit/s")
        self._fill(now_us)
        self._rate_bps = rate_bps

    def holds(self, size_bytes: int, now_us: int) -> bool:
        """Return whether a frame of that size may leave now."""
        self._fill(now_us)
        return self._level >= 8 * size_bytes * _MICRO

    def spend(self, size_bytes: int) -> None:
        """A frame has left."""
        self._level -= 8 * size_bytes * _MICRO

    def ready_us(self, size_bytes: int) -> int:
        """Return when the next frame may leave, as seen from the last `holds`; its sender waits for that, until
        `rest`.
        """
        self._awaited = True
        missing = 8 * size_bytes * _MICRO - self._level
        return self._now_us + max(0, -(-missing // self._rate_bps))

    def empty(self, now_us: int, *, wait_us: int) -> None:
        """Empty it as if it became full after wait_us: senders that begin together take turns by that."""
        self._fill(now_us)
        self._awaited = False
        self._level = self._burst - self._rate_bps * wait_us

    def rest(self, now_us: int) -> None:
        """Nobody waits for the bucket any more: it holds no more than a burst."""
        self._fill(now_us)
        self._awaited = False
        self._level = min(self._level, self._burst)

    def _fill(self, now_us: int) -> None:
        most = self._burst
        if self._awaited:
            most += self._rate_bps * self._catch_up_us
        self._level = min(most, self._level + self._rate_bps * (now_us - self._now_us))
        self._now_us = now_us


# ---- Additive increase, multiplicative decrease by congestion marks (RFC 3168) ----


class AimdRate:
    """Rates are bit/s; times microseconds of the caller's clock. Packets are numbered as they are sent first."""

    def __init__(self, start_bps: int, least_bps: int, most_bps: int, *, step_bps: int, period_us: int) -> None:
        """step_bps: added after each period in which nothing was marked."""
        self.rate_bps = start_bps
        self._least_bps = least_bps
        self._most_bps = most_bps
        self._step_bps = step_bps
        self._period_us = period_us
        self._since_us: int | None = None
        self._counts_from: int | None = None
        self.decreases = 0

    def acknowledged(self, number: int, next_number: int, *, marked: bool, now_us: int) -> None:
        """Take in that all before packet `number` have come.

        next_number: of the next new packet. What was sent before the last decrease tells nothing of what came after
        it: one decrease in a round trip.
        """
        if self._since_us is None:
            self._since_us = now_us
        heard = self._counts_from is None or 0 < forward_distance(self._counts_from, number) < PACKET_NUMBERS // 2
        if marked and heard:
            self.rate_bps = max(self._least_bps, self.rate_bps // 2)
            self._counts_from, self._since_us = next_number, now_us
            self.decreases += 1
        elif not marked and now_us - self._since_us >= self._period_us:
            self.rate_bps = min(self._most_bps, self.rate_bps + self._step_bps)
            self._since_us = now_us
