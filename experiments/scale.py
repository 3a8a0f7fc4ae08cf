"""Nominal and emulated units: one factor slows a whole network down so that the machine keeps up with it.

With factor f every rate becomes f times what the study says, every delay and timeout 1/f times. Counted in packets
and in transmission times of a packet, nothing changes: bandwidth-delay products, queues and windows keep their size.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """factor: in (0, 1]; emulated rate over nominal rate."""

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1:
            raise ValueError(f"a scale is in (0, 1], got {self.factor}")

    def rate_bps(self, nominal_mbps: float | None) -> int | None:
        """A nominal rate in Mbit/s as emulated bit/s; None (unlimited) stays."""
        return None if nominal_mbps is None else max(1, round(nominal_mbps * 1e6 * self.factor))

    def time_us(self, nominal_us: float) -> int:
        return round(nominal_us / self.factor)

    def nominal_rate(self, emulated: float) -> float:
        """A measured rate in nominal units."""
        return emulated / self.factor

    def nominal_time(self, emulated: float) -> float:
        """A measured time in nominal units."""
        return emulated * self.factor
