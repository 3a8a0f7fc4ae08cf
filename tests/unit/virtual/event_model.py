"""A network of switches and links, event by event, written from what docs/performance.md says of order alone.

Every event has a time and the number of the moment at which it was caused; the earliest is next, and of one time that
which was caused first. A frame causes its arrival when its transmission begins, and its departure when it gets to the
head of a queue. Knows nothing of the engine that it is compared with.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

INSTRUCTION_BYTES = 8
"""What a switch takes off the front of a frame."""


@dataclass(frozen=True)
class Frame:
    number: int
    length: int
    ports: tuple[int, ...]
    """Of the switches that it has still to pass, in order."""


@dataclass
class Cable:
    """One direction. byte_ns: 0 is an unlimited rate. to: a switch, or a host."""

    byte_ns: int
    delay_ns: int
    to: str
    busy_until_ns: int = 0
    waiting: deque[Frame] = field(default_factory=deque)


class EventModel:
    """cables: by the switch and port, or the host, that they lead away from. arrived: (time, host, frame), in the
    order in which they arrived."""

    def __init__(self, cables: Mapping[tuple[str, int], Cable]) -> None:
        self.arrived: list[tuple[int, str, int]] = []
        self._cables = cables
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._now_ns = 0

    def send(self, host: str, at_ns: int, frame: Frame) -> None:
        offered = partial(self._offer, self._cables[host, 0], frame)
        if at_ns > self._now_ns:
            self._at(at_ns, offered)
        else:
            offered()

    def run(self) -> None:
        while self._events:
            self._now_ns, _, happen = heapq.heappop(self._events)
            happen()

    def _at(self, time_ns: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_ns, next(self._numbers), happen))

    def _offer(self, cable: Cable, frame: Frame) -> None:
        if cable.waiting or cable.busy_until_ns > self._now_ns:
            cable.waiting.append(frame)
            if len(cable.waiting) == 1:
                self._at(cable.busy_until_ns, partial(self._depart, cable))
        else:
            self._transmit(cable, frame)

    def _depart(self, cable: Cable) -> None:
        self._transmit(cable, cable.waiting.popleft())
        if cable.waiting:
            self._at(cable.busy_until_ns, partial(self._depart, cable))

    def _transmit(self, cable: Cable, frame: Frame) -> None:
        cable.busy_until_ns = self._now_ns + cable.byte_ns * frame.length
        self._at(cable.busy_until_ns + cable.delay_ns, partial(self._arrive, cable.to, frame))

    def _arrive(self, at: str, frame: Frame) -> None:
        if not frame.ports:
            self.arrived.append((self._now_ns, at, frame.number))
            return
        port, *rest = frame.ports
        self._offer(self._cables[at, port], Frame(frame.number, frame.length - INSTRUCTION_BYTES, tuple(rest)))
