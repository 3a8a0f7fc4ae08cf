"""What a rank computes with: its accelerator, the accelerator's memory, and the host's processor, side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from gradbed.hosts.systems.training.execution import Kind, TraceNode


class Unit(Enum):
    """A unit that does one node after the other."""

    ACCELERATOR = 0
    MEMORY = 1
    CPU = 2


class Task(NamedTuple):
    """place: of the node in its graph."""

    place: int
    duration_ns: int


@dataclass
class Queue:
    """The queue of a unit, in the order in which nodes became ready."""

    waiting: deque[Task] = field(default_factory=deque)
    running: Task | None = None
    ends_ns: int = 0
    busy_ns: int = 0


class Processor:
    """Everything takes `slowdown` times as long as the trace says."""

    def __init__(self, slowdown: float = 1.0) -> None:
        self._slowdown = slowdown
        self._queues = {unit: Queue() for unit in Unit}

    @property
    def compute_busy_ns(self) -> int:
        """Return how long the accelerator has computed so far, what it does now included to its end."""
        return self._queues[Unit.ACCELERATOR].busy_ns

    @property
    def next_ns(self) -> int | None:
        """Return when something ends next; None: nothing runs."""
        found = None
        for queue in self._queues.values():
            if queue.running is not None and (found is None or queue.ends_ns < found):
                found = queue.ends_ns
        return found

    def begin(self, place: int, node: TraceNode, now_ns: int) -> None:
        """Now, or once what came before has ended."""
        unit = Unit.MEMORY if node.kind is Kind.MEMORY else Unit.CPU if node.on_cpu else Unit.ACCELERATOR
        queue = self._queues[unit]
        queue.waiting.append(Task(place, round(node.duration_ns * self._slowdown)))
        if queue.running is None:
            self._start(queue, now_ns)

    def ended(self, now_ns: int) -> Iterator[tuple[int, int]]:
        """Yield what has ended by now: its place, and when."""
        for queue in self._queues.values():
            while queue.running is not None and queue.ends_ns <= now_ns:
                place, ends_ns = queue.running.place, queue.ends_ns
                queue.running = None
                self._start(queue, ends_ns)
                yield place, ends_ns

    def _start(self, queue: Queue, now_ns: int) -> None:
        if queue.waiting:
            queue.running = queue.waiting.popleft()
            queue.ends_ns = now_ns + queue.running.duration_ns
            queue.busy_ns += queue.running.duration_ns
