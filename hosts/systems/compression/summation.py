"""The server's sum of a round, and what the launcher is told of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.systems.compression.assembly import Assembly
from gradbed.hosts.systems.compression.compressors import DrawnPlaces, job_compressor
from gradbed.hosts.systems.compression.description import JobDescription

_INT32 = np.iinfo(np.int32)


class Summation:
    """Round by round."""

    def __init__(self, job: JobDescription, context: AgentContext) -> None:
        self._compressor = job_compressor(job, 0)
        self._values = job.values
        self._drawn = DrawnPlaces(self._compressor, job.values)
        self._context = context
        self._total: NDArray[np.int64] = np.zeros(job.values, np.int64)
        self.round = 0
        self.rejected = 0
        """Parts that made no sense."""

    def assembly(self) -> Assembly:
        """For a worker's gradient."""
        return Assembly(self._compressor.length(self._values), self._drawn)

    def add(self, worker: int, gradient: Assembly, *, is_whole: bool = True) -> None:
        """Of a gradient of which only a part has come, that counts if it can be read without the rest."""
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
