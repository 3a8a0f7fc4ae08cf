"""What the parameter server does however packets travel: rounds, sums, and workers that are waited for no longer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import Route
from gradbed.hosts.systems.compression.gradients import Assembly, DrawnPlaces, job_compressor

# ---- The sum of a round, and what the launcher is told of it ----


_INT32 = np.iinfo(np.int32)


class Summation:
    """Round by round."""

    def __init__(self, job: CompressionJob, context: AgentContext) -> None:
        self._compressor = job_compressor(job, 0)
        self._values = job.values
        self._drawn = DrawnPlaces(self._compressor, job.values)
        self._context = context
        self._total: NDArray[np.int64] = np.zeros(job.values, np.int64)
        self.round = 0
        self.rejected = 0
        """Parts that made no sense."""

    def assembly(self) -> Assembly:
        """Return an empty assembly for a worker's gradient."""
        return Assembly(self._compressor.length(self._values), self._drawn)

    def add(self, worker: int, gradient: Assembly, *, is_whole: bool = True) -> None:
        """Add a worker's gradient. One of which only a part has come counts if it can be read without the rest."""
        self.rejected += gradient.rejected
        if not (is_whole or self._compressor.is_placewise):
            return
        values = self._compressor.restored(gradient.values)
        self._total += values
        found = gradient.fingerprint if self._compressor.is_placewise else fingerprint(values, len(values))
        self._context.emit("received", worker=worker, round=self.round, fingerprint=found)

    def finish(self) -> Content:
        """The sum, to be sent back; the next round begins."""
        total, self._total = self._total, np.zeros_like(self._total)
        self._context.emit("sum", round=self.round, fingerprint=fingerprint(total, len(total)) % MODULUS)
        content = _content(total, self._drawn(self.round))
        self.round += 1
        return content


def _content(total: NDArray[np.int64], drawn: NDArray[np.intp] | None) -> Content:
    """The values that are not zero, with 64 bits where some sum does not fit 32."""
    values = total if drawn is None else total[drawn]
    fits = _INT32.min <= values.min(initial=0) and values.max(initial=0) <= _INT32.max
    positions = np.flatnonzero(values)
    return Content(len(total), values[positions], 32 if fits else 64, indices=positions, drawn=drawn)


# ---- The server ----


@dataclass(kw_only=True)
class ServedWorker:
    """done: its gradient of this round is here."""

    index: int
    gradient: Assembly
    heard_us: int
    done: bool = False


Key = TypeVar("Key")
Kind = TypeVar("Kind", bound=ServedWorker)


class ParameterServer(ABC, Generic[Key, Kind]):
    """The parameter server of a job.

    A worker that is silent for left_after_us, while another worker's gradient is here, has left.
    """

    _workers: dict[Key, Kind]
    """Those that take part; a server fills it when it is made."""

    def __init__(self, job: CompressionJob, context: AgentContext) -> None:
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
        """Return the workers that have been silent for too long."""
        return [key for key in self._waited_for() if now_us - self._workers[key].heard_us >= self._left_after_us]

    def _timeout_us(self) -> int | None:
        """Return when some worker will have been silent for too long; None: none is waited for."""
        times = [self._workers[key].heard_us for key in self._waited_for()]
        return min(times) + self._left_after_us if times else None

    def _waited_for(self) -> list[Key]:
        missing = [key for key, worker in self._workers.items() if not worker.done]
        return missing if len(missing) < len(self._workers) else []
