"""Workers that are silent while others wait for them: for how long, and who has left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

Key = TypeVar("Key")


class Heard(Protocol):
    """What the server knows of a worker."""

    heard_us: int

    @property
    def done(self) -> bool:
        """Its gradient of this round is here."""


class Silence:
    """A server's patience: left_after_us of silence, while another worker's gradient is here."""

    def __init__(self, left_after_us: int) -> None:
        self._left_after_us = left_after_us

    def left(self, workers: Mapping[Key, Heard], now_us: int) -> list[Key]:
        """Who has been silent for too long."""
        return [
            key for key, worker in _waited_for(workers).items() if now_us - worker.heard_us >= self._left_after_us
        ]

    def ends_us(self, workers: Mapping[Key, Heard]) -> int | None:
        """When somebody will have been; None: nobody is waited for."""
        times = [worker.heard_us for worker in _waited_for(workers).values()]
        return min(times) + self._left_after_us if times else None


def _waited_for(workers: Mapping[Key, Heard]) -> dict[Key, Heard]:
    missing = {key: worker for key, worker in workers.items() if not worker.done}
    return missing if len(missing) < len(workers) else {}
