"""Sending at a rate: a token bucket on the caller's clock.

Bits flow into the bucket at the rate, and a frame leaves when the bucket holds all of its bits. A bucket that
nobody waits for holds one burst. One that somebody does wait for goes on filling for a while, so that who wakes up
late makes up for it: with a kernel's timers of a millisecond a bucket of one frame would lose half of its rate. All
arithmetic is in integers, so that no rounding adds up.
"""

from __future__ import annotations

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
        """From now on."""
        if rate_bps < 1:
            raise ValueError(f"a bucket needs a rate, got {rate_bps} bit/s")
        self._fill(now_us)
        self._rate_bps = rate_bps

    def holds(self, size_bytes: int, now_us: int) -> bool:
        """Whether a frame of that size may leave now."""
        self._fill(now_us)
        return self._level >= 8 * size_bytes * _MICRO

    def spend(self, size_bytes: int) -> None:
        """A frame has left."""
        self._level -= 8 * size_bytes * _MICRO

    def ready_us(self, size_bytes: int) -> int:
        """When the next frame may leave, as seen from the last `holds`; its sender waits for that, until `rest`."""
        self._awaited = True
        missing = 8 * size_bytes * _MICRO - self._level
        return self._now_us + max(0, -(-missing // self._rate_bps))

    def empty(self, now_us: int, *, wait_us: int) -> None:
        """From now on as if it became full after wait_us: senders that begin together take turns by that."""
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
