"""Whether the network carries less than is sent into it: packets then wait longer and longer on their way."""

from __future__ import annotations

NOISE_FACTOR = 12
FORGET = 16


class Backlog:
    """What one worker knows of it by its round trips.

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
        """Of a packet that was sent once."""
        if self._last_us is not None:
            shorter_us = max(0, self._last_us - round_trip_us)
            self._variation_us += (shorter_us - self._variation_us) / FORGET
        self._last_us = round_trip_us
        self._least_us = round_trip_us if self._least_us is None else min(self._least_us, round_trip_us)
        self._interval_us = round_trip_us if self._interval_us is None else min(self._interval_us, round_trip_us)

    def read(self) -> bool:
        """Whether there was one in the interval since the last time."""
        least_us, self._interval_us = self._interval_us, None
        shortest = [each for each in (self._least_us, self._before_us) if each is not None]
        if least_us is None:
            return False
        return least_us - min(shortest) > self._usual_us + NOISE_FACTOR * self._variation_us
