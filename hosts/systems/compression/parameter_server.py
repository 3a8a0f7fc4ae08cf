"""What the parameter server does however packets travel: rounds, sums, and workers that are waited for no longer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.systems.compression.assembly import Assembly
from gradbed.hosts.systems.compression.description import JobDescription
from gradbed.hosts.systems.compression.packets.frames import Route
from gradbed.hosts.systems.compression.summation import Summation


@dataclass(kw_only=True)
class Worker:
    """done: its gradient of this round is here."""

    index: int
    gradient: Assembly
    heard_us: int
    done: bool = False


Key = TypeVar("Key")
Kind = TypeVar("Kind", bound=Worker)


class ParameterServer(ABC, Generic[Key, Kind]):
    """Of a job. It is patient for left_after_us of a worker's silence, while another worker's gradient is here."""

    _workers: dict[Key, Kind]
    """Those that take part; a server fills it when it is made."""

    def __init__(self, job: JobDescription, context: AgentContext) -> None:
        self._context = context
        self._sum = Summation(job, context)
        self._route = Route(job.job, job.server, job.multicast.ip, job.multicast.mac)
        self._left_after_us = job.left_after_us

    @abstractmethod
    def _send(self, number: int, content: Content) -> None:
        """A round's sum, to all workers."""

    def _complete_round(self) -> None:
        """Once all gradients are here."""
        if not self._workers or not all(worker.done for worker in self._workers.values()):
            return
        for worker in self._workers.values():
            self._sum.add(worker.index, worker.gradient)
            worker.gradient, worker.done = self._sum.assembly(), False
            worker.heard_us = self._context.now_us()
        number = self._sum.round
        self._send(number, self._sum.finish())

    def _leave(self, key: Key) -> Kind:
        """Nobody waits any longer for this worker; what has come of its gradient counts."""
        worker = self._workers.pop(key)
        self._sum.add(worker.index, worker.gradient, is_whole=worker.done)
        self._context.emit("left", worker=worker.index, round=self._sum.round)
        return worker

    def _silent(self, now_us: int) -> list[Key]:
        """Who has been silent for too long."""
        return [key for key in self._waited_for() if now_us - self._workers[key].heard_us >= self._left_after_us]

    def _patience_ends_us(self) -> int | None:
        """When somebody will have been; None: nobody is waited for."""
        times = [self._workers[key].heard_us for key in self._waited_for()]
        return min(times) + self._left_after_us if times else None

    def _waited_for(self) -> list[Key]:
        missing = [key for key, worker in self._workers.items() if not worker.done]
        return missing if len(missing) < len(self._workers) else []
