"""What a script's process has of the network: the exchange, once all ranks have told how long their gradients are."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from hosts.agents.channel import Channel
from hosts.agents.clock import now_us
from hosts.collectives.exchange import Exchange
from hosts.learning.settings import ExternalSettings
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.exchanges import open_exchange
from switch.errors import UserError
from topo.caller import as_root


class Session:
    """One rank's side. A context manager; the exchange closes with it."""

    def __init__(self, job: JobDescription, index: int, interface: str, channel: Channel) -> None:
        assert isinstance(job.workload, ExternalSettings)
        self._job = job
        self._index = index
        self._interface = interface
        self._channel = channel
        self._resources = contextlib.ExitStack()
        self._exchange: Exchange | None = None
        self._round = 0
        self.workers = len(job.workers)
        self.headroom_bits = job.workload.headroom_bits

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._resources.close()

    def open(self, values: int) -> None:
        """Gradients have `values` values. Returns when all ranks have said so, and the server is ready."""
        if self._exchange is not None:
            raise UserError("torch_hook.register was called before: one model can use the network")
        workload = self._job.workload.model_copy(update={"values": values})
        job = self._job.model_copy(update={"workload": workload})
        with as_root():  # for packet sockets
            self._exchange = self._resources.enter_context(
                open_exchange(job, self._index, self._interface, self._channel)
            )
        self._channel.emit("registered", values=values)
        if not self._channel.wait_for_begin():
            raise UserError("stopped before all ranks had registered a model")

    def all_reduce(self, values: NDArray[np.int32], clipped: int) -> NDArray[np.int64]:
        """The sum of all ranks' values, flat; clipped: how many of these were too large, for the record."""
        assert self._exchange is not None
        start_us = now_us()
        total = self._exchange.all_reduce(self._round, values)
        if total is None:
            raise UserError("stopped")
        self._channel.emit("round", round=self._round, seconds=(now_us() - start_us) / 1e6, clipped=clipped)
        self._round += 1
        return total

    def finish(self) -> None:
        """The script has ended: answer and count what still comes, until stop."""
        if self._exchange is None:
            self._channel.emit("done", statistics={})
            while not self._channel.stopped:
                self._channel.wait_for_begin()
            self._channel.emit("final", statistics={})
            return
        self._exchange.flush()
        self._channel.emit("done", statistics=self._exchange.report())
        self._exchange.linger()
        self._exchange.settle()
        self._channel.emit("final", statistics=self._exchange.report())
