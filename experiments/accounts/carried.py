"""What links carried between two times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradbed.emulation.statistics import DirectionStatistics
from gradbed.topo.graph import Direction

LinkRows = Mapping[Direction, DirectionStatistics]


@dataclass(frozen=True)
class LinkBytes:
    """What each direction carried between two times, in emulated microseconds since the agents began. before, after:
    all that links told then."""

    bytes: Mapping[Direction, int] = field(default_factory=dict)
    from_us: int = 0
    to_us: int = 0
    before: LinkRows = field(default_factory=dict)
    after: LinkRows = field(default_factory=dict)

    def load(self, direction: Direction, rate_bps: int | None) -> float | None:
        """The part of a rate (bit/s, emulated) that a direction used; None: it has none, or no time was taken."""
        taken_us = self.to_us - self.from_us
        if not rate_bps or taken_us <= 0 or direction not in self.bytes:
            return None
        return 8e6 * self.bytes[direction] / (rate_bps * taken_us)
