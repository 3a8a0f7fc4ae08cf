"""How fast the virtual clock goes before somebody who looks on: paused, so many times slower or faster, or freely."""

from __future__ import annotations

import time
from collections.abc import Callable

AHEAD_S = 0.02
"""So much of real time at most goes by between two looks at a clock that is held back."""


class Pace:
    """Times of the network are in microseconds, emulated; `real_s` tells the real time in seconds."""

    def __init__(self, real_s: Callable[[], float] = time.monotonic) -> None:
        self._real_s = real_s
        self.paused = False
        self.speed: float | None = None
        """Times of the network over real time; None: as fast as possible."""
        self._anchor_us = 0
        self._anchor_s = 0.0
        self._stop_us: int | None = None
        """Where a step ends."""

    @property
    def is_free(self) -> bool:
        """Whether nothing holds time back, now or soon."""
        return not self.paused and self.speed is None and self._stop_us is None

    def run(self, now_us: int) -> None:
        self.paused, self._stop_us = False, None
        self._hold(now_us)

    def pause(self) -> None:
        self.paused, self._stop_us = True, None

    def step(self, now_us: int, step_us: int) -> None:
        """Go on for so long, and pause there; 0: up to the next moment at which anybody acts."""
        self.paused = False
        self._stop_us = now_us + step_us
        self._hold(now_us)

    def set_speed(self, now_us: int, speed: float | None) -> None:
        self.speed = speed
        self._hold(now_us)

    def _hold(self, now_us: int) -> None:
        """Real time counts from here."""
        self._anchor_us, self._anchor_s = now_us, self._real_s()

    def arrived(self, now_us: int) -> bool:
        """Time has come so far; whether a step is at its end."""
        if self._stop_us is None or now_us < self._stop_us:
            return False
        self.pause()
        return True

    def ahead_s(self, now_us: int) -> float:
        """How long the network has to wait for real time."""
        if self.speed is None:
            return 0.0
        return (now_us - self._anchor_us) / 1e6 / self.speed - (self._real_s() - self._anchor_s)

    def next_us(self, now_us: int) -> int | None:
        """When to look again, at the latest; None: it does not matter."""
        times = [] if self.speed is None else [now_us + max(1, round(1e6 * AHEAD_S * self.speed))]
        if self._stop_us is not None:
            times.append(max(self._stop_us, now_us + 1))
        return min(times, default=None)
