"""Sums by recursive doubling: the workers alone, each with log2 n others in turn."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.doubling_reduction import DoublingReduction, Outgoing
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.recursive_doubling import partners
from gradbed.hosts.collectives.ring_endpoint import RingEndpoint, read_frames
from gradbed.hosts.collectives.ring_reduction import RingMessage
from gradbed.hosts.collectives.ring_stream import RingStream
from gradbed.hosts.learning.fragments import cut, join
from gradbed.hosts.transport.statistics import EndpointStatistics


class DoublingExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface.

    A worker may be a round ahead of those that wait for others: what it sends early waits.
    """

    def __init__(self, job: CollectiveJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._interface = interface
        self._statistics = EndpointStatistics()
        self._endpoints: dict[int, RingEndpoint] = {}  # by the worker at the other end
        self._streams: dict[int, RingStream] = {}
        for peer in sorted({partner.peer for partner in partners(len(job.workers), index)}):
            endpoint = RingEndpoint(job, index, interface, before=peer, after=peer, statistics=self._statistics)
            self._endpoints[peer] = endpoint
            self._streams[peer] = RingStream(job, endpoint, job.sender_seed(index + len(job.workers) * (1 + peer)))
        self._early: list[tuple[int, RingMessage]] = []
        self._next_round = 0
        self._reduction: DoublingReduction | None = None

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        reduction = DoublingReduction(round_number, self._index, len(self._job.workers), cut(values, self._job.lanes))
        self._reduction, self._next_round = reduction, round_number + 1
        self._queue(reduction.begin())
        early, self._early = self._early, []
        for peer, message in early:
            self._take(peer, message)
        if not self._serve_until(lambda: reduction.finished):
            return None
        self._reduction = None
        return join(reduction.sums, len(values))

    def flush(self) -> None:
        self._serve_until(lambda: all(stream.sender.finished for stream in self._streams.values()))

    def linger(self) -> None:
        while not self._context.stopped:
            self._take_in()
            self._context.wait(self._due_us())

    def _count(self) -> object | None:
        return read_frames(self._interface, self._job, self._statistics)

    def report(self) -> dict[str, Any]:
        self._statistics.socket_drops = self._interface.drops()
        counted: Counter[str] = Counter()
        for stream in self._streams.values():
            for part in (stream.sender.statistics.to_json(), stream.receiver.statistics.to_json()):
                counted.update({name: count for name, count in part.items() if isinstance(count, int)})
        return {**self._statistics.to_json(), **counted}

    def _silence(self) -> str:
        missing = 0 if self._reduction is None else self._reduction.missing
        return (
            f"no news from other workers {self._patience} in round {self._next_round - 1} "
            f"({missing} of {self._job.fragments_per_round} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return min(
            (due for stream in self._streams.values() if (due := stream.sender.deadline_us) is not None), default=None
        )

    def _take_in(self) -> bool:
        """All that waits, and send what is due: another worker may need it before this one needs anything more."""
        news = False
        while (received := read_frames(self._interface, self._job, self._statistics)) is not None:
            self._statistics.misdirected += len(received.data) + len(received.acknowledgements)
            for peer, endpoint in self._endpoints.items():
                wanted = endpoint.wanted(received)
                self._statistics.misdirected -= len(wanted.data) + len(wanted.acknowledgements)
                stream = self._streams[peer]
                if len(wanted.acknowledgements):
                    news |= stream.take_acknowledgements(wanted.acknowledgements, self._context.now_us())
                for message in stream.take_data(wanted.data):
                    news = True
                    self._take(peer, message)
        for stream in self._streams.values():
            stream.send_due(self._context.now_us())
        return news

    def _send_due(self) -> None:
        """It is sent already."""

    def _take(self, peer: int, message: RingMessage) -> None:
        if message.round == self._next_round:
            self._early.append((peer, message))
            return
        outgoing = None if self._reduction is None else self._reduction.accept(peer, message)
        if outgoing is None:
            self._streams[peer].receiver.statistics.rejected += 1
        else:
            self._queue(outgoing)

    def _queue(self, outgoing: Outgoing) -> None:
        for peer, stream in self._streams.items():
            if messages := [message for to, message in outgoing if to == peer]:
                stream.queue(messages)
