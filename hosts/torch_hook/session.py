"""What a script's process has of the network: the exchange, once all ranks have told how long their gradients are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.common.caller import as_root
from gradbed.common.errors import UserError
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.exchange import Exchange, finish
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.settings import ExternalSettings

OpenExchange = Callable[[AgentContext, Any, int], contextlib.AbstractContextManager[Exchange]]
"""Opens the exchange of a job, whose type is the system's own, for the worker with this index."""


class Session:
    """A rank's session. A context manager; the exchange closes with it."""

    def __init__(self, job: CollectiveJob, index: int, open_exchange: OpenExchange, context: AgentContext) -> None:
        """UserError if the job's gradients are not an external program's, or it has no such worker."""
        if not isinstance(job.workload, ExternalSettings):
            raise UserError(f"a script is for a job with an external workload, not {job.workload.kind}")
        if index >= len(job.workers):
            raise UserError(f"the job has workers 0 to {len(job.workers) - 1}, not {index}")
        self.job = job
        self.index = index
        self._open_exchange = open_exchange
        self._context = context
        self._resources = contextlib.ExitStack()
        self._exchange: Exchange | None = None
        self._round = 0
        self.workers = len(job.workers)
        self.headroom_bits = job.workload.headroom_bits
        self.exponent = job.workload.exponent

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._resources.close()

    def open(self, values: int) -> None:
        """Gradients have `values` values. Returns when all ranks have said so, and the server is ready."""
        if self._exchange is not None:
            raise UserError("torch_hook.register was called before: one model can use the network")
        workload = self.job.workload.model_copy(update={"values": values})
        job = self.job.model_copy(update={"workload": workload})
        with as_root():  # for packet sockets
            self._exchange = self._resources.enter_context(self._open_exchange(self._context, job, self.index))
        self._context.emit("registered", values=values)
        if not self._context.wait_for_begin():
            raise UserError("stopped before all ranks had registered a model")

    def all_reduce(self, values: NDArray[np.int32], clipped: int) -> NDArray[np.int64]:
        """The sum of all ranks' values, flat; clipped: how many of these were too large, for the record."""
        assert self._exchange is not None
        start_us = self._context.now_us()
        total = self._exchange.all_reduce(self._round, values)
        if total is None:
            raise UserError("stopped")
        complete_us = self._context.now_us()
        self._context.emit(
            "round",
            round=self._round,
            seconds=(complete_us - start_us) / 1e6,
            complete_us=complete_us,
            clipped=clipped,
        )
        self._round += 1
        return total

    def finish(self) -> None:
        """The script has ended: reply and count what still comes, until stop."""
        if self._exchange is None:
            self._context.emit("done", statistics={})
            while not self._context.stopped:
                self._context.wait()
            self._context.emit("final", statistics={})
            return
        self._exchange.flush()
        finish(self._exchange, self._context)
