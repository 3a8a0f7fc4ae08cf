"""A sending rate that follows congestion marks (RFC 3168): additive increase, multiplicative decrease."""

from __future__ import annotations

from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS, forward_distance


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
        """All before packet `number` have come. next_number: of the next new packet. What was sent before the last
        decrease tells nothing of what came after it: one decrease in a round trip."""
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
