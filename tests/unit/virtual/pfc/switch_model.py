"""One switch, its hosts and PFC, event by event, written from docs/lossless-ethernet.md alone.

Knows nothing of the engine that it is compared with. Times are nanoseconds; rates are nanoseconds for a byte.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

PAUSE_BYTES = 60
PRIORITIES = range(8)


@dataclass(frozen=True)
class Packet:
    number: int
    source: int
    target: int
    length: int
    priority: int


@dataclass
class Cable:
    """One direction of a host's link."""

    byte_ns: int
    delay_ns: int
    xoff: int
    xon: int
    limit: int
    to_switch: bool
    waiting: list[deque[Packet]] = field(default_factory=lambda: [deque() for _ in PRIORITIES])
    busy_until: int = 0
    due: bool = False
    drops: int = 0
    # Of the transmitter.
    paused_since: dict[int, int] = field(default_factory=dict)
    paused_ns: list[int] = field(default_factory=lambda: [0] * 8)
    pauses_received: list[int] = field(default_factory=lambda: [0] * 8)
    # Of the switch at its end.
    held: list[int] = field(default_factory=lambda: [0] * 8)
    asked: set[int] = field(default_factory=set)
    pauses_sent: list[int] = field(default_factory=lambda: [0] * 8)

    def queue_of(self, packet: Packet) -> int:
        """A NIC without PFC has one queue."""
        return packet.priority if self.xoff or not self.to_switch else 0

    def next_priority(self) -> int | None:
        ready = [p for p in PRIORITIES if self.waiting[p] and p not in self.paused_since]
        return max(ready, default=None)


class SwitchModel:
    """up, down: the cables of each host. arrived: (time, host, number). longest: of any queue, in packets."""

    def __init__(self, up: list[Cable], down: list[Cable]) -> None:
        self.up, self.down = up, down
        self.arrived: list[tuple[int, int, int]] = []
        self.longest = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._now = 0

    def send(self, at_ns: int, packet: Packet) -> None:
        self._at(at_ns, partial(self._offer, self.up[packet.source], packet))

    def run(self) -> None:
        while self._events:
            self._now, _, happen = heapq.heappop(self._events)
            happen()

    def _at(self, time_ns: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_ns, next(self._order), happen))

    def _offer(self, cable: Cable, packet: Packet) -> None:
        free = cable.busy_until <= self._now and cable.queue_of(packet) not in cable.paused_since
        if free and cable.next_priority() is None:
            self._transmit(cable, packet)
            return
        queue = cable.waiting[cable.queue_of(packet)]
        if len(queue) >= cable.limit:
            cable.drops += 1
            return
        queue.append(packet)
        self.longest = max(self.longest, len(queue))
        self._wake(cable)
        if not cable.to_switch:
            came = self.up[packet.source]
            came.held[packet.priority] += packet.length
            if came.xoff and came.held[packet.priority] > came.xoff and packet.priority not in came.asked:
                came.asked.add(packet.priority)
                came.pauses_sent[packet.priority] += 1
                self._tell(packet.source, packet.priority, True)

    def _wake(self, cable: Cable) -> None:
        if not cable.due and cable.next_priority() is not None:
            cable.due = True
            self._at(max(cable.busy_until, self._now), partial(self._depart, cable))

    def _depart(self, cable: Cable) -> None:
        cable.due = False
        if cable.busy_until <= self._now and (priority := cable.next_priority()) is not None:
            packet = cable.waiting[priority].popleft()
            self._transmit(cable, packet)
            if not cable.to_switch:
                came = self.up[packet.source]
                came.held[priority] -= packet.length
                if priority in came.asked and came.held[priority] <= came.xon:
                    came.asked.remove(priority)
                    self._tell(packet.source, priority, False)
        self._wake(cable)

    def _transmit(self, cable: Cable, packet: Packet) -> None:
        cable.busy_until = self._now + packet.length * cable.byte_ns
        at_ns = cable.busy_until + cable.delay_ns
        if cable.to_switch:
            self._at(at_ns, partial(self._offer, self.down[packet.target], packet))
        else:
            self._at(at_ns, lambda: self.arrived.append((self._now, packet.target, packet.number)))

    def _tell(self, host: int, priority: int, pause: bool) -> None:
        back = self.down[host]
        back.busy_until = max(back.busy_until, self._now) + PAUSE_BYTES * back.byte_ns
        self._at(back.busy_until + back.delay_ns, partial(self._hear, self.up[host], priority, pause))

    def _hear(self, cable: Cable, priority: int, pause: bool) -> None:
        if pause:
            cable.paused_since[priority] = self._now
            cable.pauses_received[priority] += 1
        else:
            cable.paused_ns[priority] += self._now - cable.paused_since.pop(priority)
            self._wake(cable)
