"""Sums by ring all-reduce: the workers alone, each sending to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.ring_endpoint import RingEndpoint
from gradbed.hosts.collectives.ring_reduction import RingMessage, RingReduction
from gradbed.hosts.collectives.ring_stream import RingStream
from gradbed.hosts.learning.fragments import cut, join


class RingExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface.

    The worker before may be a round ahead, since it needs nothing of this one to begin: what it sends early waits.
    """

    def __init__(self, job: CollectiveJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._endpoint = RingEndpoint(job, index, interface)
        self._stream = RingStream(job, self._endpoint, job.sender_seed(index))
        self._early: list[RingMessage] = []
        self._next_round = 0
        self._reduction: RingReduction | None = None

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        reduction = RingReduction(round_number, self._index, len(self._job.workers), cut(values, self._job.lanes))
        self._reduction, self._next_round = reduction, round_number + 1
        self._stream.queue(reduction.begin())
        early, self._early = self._early, []
        for message in early:
            self._take(message)
        if not self._serve_until(lambda: reduction.finished):
            return None
        self._reduction = None
        return join(reduction.sums, len(values))

    def flush(self) -> None:
        self._serve_until(lambda: self._stream.sender.finished)

    def linger(self) -> None:
        while not self._context.stopped:
            self._take_in()
            self._context.wait(self._due_us())

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {
            **self._endpoint.report(),
            **self._stream.sender.statistics.to_json(),
            **self._stream.receiver.statistics.to_json(),
        }

    def _silence(self) -> str:
        missing = 0 if self._reduction is None else self._reduction.missing
        return (
            f"no news on the ring {self._patience} in round {self._next_round - 1} "
            f"({missing} of {self._job.fragments_per_round} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return self._stream.sender.deadline_us

    def _take_in(self) -> bool:
        """All that waits, and send what is due: the next worker may need it before this one needs anything more."""
        news = False
        while (received := self._endpoint.receive()) is not None:
            news |= self._stream.take_acknowledgements(received.acknowledgements, self._context.now_us())
            for message in self._stream.take_data(received.data):
                news = True
                self._take(message)
        self._stream.send_due(self._context.now_us())
        return news

    def _send_due(self) -> None:
        """It is sent already."""

    def _take(self, message: RingMessage) -> None:
        if message.round == self._next_round:
            self._early.append(message)
            return
        messages = None if self._reduction is None else self._reduction.accept(message)
        if messages is None:
            self._stream.receiver.statistics.rejected += 1
        else:
            self._stream.queue(messages)
