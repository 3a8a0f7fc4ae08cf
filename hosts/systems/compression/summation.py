"""The server's sum of a round, and what the launcher is told of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hosts.agents.context import AgentContext
from hosts.compressors.content import Content
from hosts.compressors.fingerprint import MODULUS, fingerprint
from hosts.systems.compression.assembly import Assembly
from hosts.systems.compression.compressors import job_compressor
from hosts.systems.compression.description import JobDescription

_INT32 = np.iinfo(np.int32)


class Summation:
    """Round by round."""

    def __init__(self, job: JobDescription, context: AgentContext) -> None:
        self._compressor = job_compressor(job, 0)
        self._values = job.values
        self._context = context
        self._total: NDArray[np.int64] = np.zeros(job.values, np.int64)
        self.round = 0
        self.rejected = 0
        """Parts that made no sense."""

    def assembly(self) -> Assembly:
        """For a worker's gradient."""
        return Assembly(self._compressor.length(self._values))

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
        self.round += 1
        return _content(total)


def _content(total: NDArray[np.int64]) -> Content:
    """The values that are not zero, with 64 bits where some sum does not fit 32."""
    fits = _INT32.min <= total.min(initial=0) and total.max(initial=0) <= _INT32.max
    places = np.flatnonzero(total)
    return Content(len(total), total[places], 32 if fits else 64, indices=places)
