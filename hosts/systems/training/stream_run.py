"""Collectives that switches carry out: vectors through streams of fragments, in the order of the trace at every
rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.fragment_streams import StreamStatistics
from gradbed.hosts.agents.queue_pairs import QueuePairs
from gradbed.hosts.systems.training.description import JobStream

OnEnd = Callable[[NDArray[np.int32] | None], None]
Vector = tuple[int, NDArray[np.int32] | None, OnEnd]
"""Size in bytes, contents, and what is to be told."""


class Stream:
    """One group's stream at one rank."""

    def __init__(self, pairs: QueuePairs, stream: JobStream, rank: int) -> None:
        self._pairs = pairs
        self._number = stream.number
        self._is_source = stream.ends[rank].role == "source"
        self._takes = stream.ends[rank].role == "sink" or stream.ends[rank].reply_payload
        self._next = 0
        self._waiting: dict[int, Vector] = {}
        self._under_way: dict[int, tuple[NDArray[np.int32] | None, OnEnd]] = {}
        pairs.open_stream(stream.number, stream.ends[rank])

    def begin(self, instance: int, vector: Vector) -> None:
        """The instance-th of the group's collectives; it waits for those before it, as fragments are counted
        through."""
        self._waiting[instance] = vector
        while self._next in self._waiting:
            size_bytes, values, on_end = self._waiting.pop(self._next)
            self._send(self._next, size_bytes, values, on_end)
            self._next += 1

    def _send(self, instance: int, size_bytes: int, values: NDArray[np.int32] | None, on_end: OnEnd) -> None:
        target = None if values is None or not self._takes else np.empty(size_bytes // 4, np.int32)
        source = values if self._is_source else None
        self._under_way[instance] = (values if target is None else target, on_end)
        # A vector has whole integers.
        self._pairs.stream(self._number, instance, -(-size_bytes // 4) * 4, source, target)

    def statistics(self) -> StreamStatistics:
        """Of this end."""
        return self._pairs.stream_statistics(self._number)

    def ended(self, instance: int) -> None:
        result, on_end = self._under_way.pop(instance)
        on_end(result)
