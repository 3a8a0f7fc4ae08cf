"""When table entries have gone without a packet for their time to live.

P4Runtime specification 1.4, sections "Idle-timeout" and "Table Idle Timeout Notification". Packets only note the time
of a hit; an entry is looked at when it would expire had it not been hit, and then again that long after its last hit.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

EntryName = TypeVar("EntryName", bound=Hashable)

# Timers that were stopped or changed stay until they are due, or until there are too many of them.
_LEFTOVERS = 1024


class _Timer(NamedTuple):
    deadline_ns: int
    serial: int


class IdleTimers(Generic[EntryName]):
    """Timers of entries, on a clock that the calls bring along. `last_hit_ns` returns when an entry was last hit."""

    def __init__(self, last_hit_ns: Callable[[EntryName], int]) -> None:
        self._last_hit_ns = last_hit_ns
        self._heap: list[_Timer] = []
        self._serials = itertools.count()
        # Time to live and serial of the one timer of an entry; the entry of a serial.
        self._armed: dict[EntryName, tuple[int, int]] = {}
        self._entries: dict[int, EntryName] = {}

    @property
    def next_ns(self) -> int | None:
        """Return the time before which no entry expires. May be read while another thread makes calls."""
        try:
            return self._heap[0].deadline_ns
        except IndexError:
            return None

    def arm(self, entry: EntryName, ttl_ns: int, now_ns: int) -> None:
        """Start, change or, with a time to live of 0, stop the entry's timer."""
        if entry in self._armed and self._armed[entry][0] == ttl_ns:
            return
        self._stop(entry)
        if ttl_ns > 0:
            self._start(entry, ttl_ns, now_ns + ttl_ns)

    def expired(self, now_ns: int) -> list[EntryName]:
        """Return the entries that have been idle for their time to live; their timers start anew."""
        result = []
        while self._heap and self._heap[0].deadline_ns <= now_ns:
            entry = self._entries.get(heapq.heappop(self._heap).serial)
            if entry is None:
                continue
            ttl_ns = self._armed[entry][0]
            self._stop(entry)
            expires_ns = self._last_hit_ns(entry) + ttl_ns
            if expires_ns <= now_ns:
                result.append(entry)
                expires_ns = now_ns + ttl_ns
            self._start(entry, ttl_ns, expires_ns)
        return result

    def _start(self, entry: EntryName, ttl_ns: int, deadline_ns: int) -> None:
        serial = next(self._serials)
        self._armed[entry] = ttl_ns, serial
        self._entries[serial] = entry
        heapq.heappush(self._heap, _Timer(deadline_ns, serial))
        if len(self._heap) > 2 * len(self._armed) + _LEFTOVERS:
            self._heap = [timer for timer in self._heap if timer.serial in self._entries]
            heapq.heapify(self._heap)

    def _stop(self, entry: EntryName) -> None:
        if entry in self._armed:
            del self._entries[self._armed.pop(entry)[1]]
