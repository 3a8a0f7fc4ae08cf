"""Sums by ring all-reduce: the workers alone, each sending to the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.ring import RingFlags
from hosts.agents.context import AgentContext, Interface
from hosts.collectives.exchange import PacketExchange
from hosts.collectives.job import CollectiveJob
from hosts.collectives.ring_endpoint import RingEndpoint
from hosts.collectives.ring_reduction import RingMessage, RingReduction
from hosts.learning.fragments import cut, join
from hosts.protocols.datagram_frames import Frames, met_congestion
from hosts.transport.packet_numbers import PACKET_NUMBERS
from hosts.transport.stream_receiver import StreamReceiver
from hosts.transport.stream_sender import StreamSender


class RingExchange(PacketExchange):
    """hosts.collectives.exchange.Exchange on an open interface.

    The worker before may be a round ahead, since it needs nothing of this one to begin: what it sends early waits.
    """

    def __init__(self, job: CollectiveJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._endpoint = RingEndpoint(job, index, interface)
        self._sender = StreamSender(
            window_packets=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            congestion_control=job.congestion_control,
            first_sequence=job.first_packet_number,
            seed=job.sender_seed(index),
        )
        self._receiver = StreamReceiver(job.first_packet_number)
        self._next_sequence = job.first_packet_number
        self._in_flight: dict[int, RingMessage] = {}  # by sequence
        self._early: list[RingMessage] = []
        self._next_round = 0
        self._reduction: RingReduction | None = None

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        reduction = RingReduction(round_number, self._index, len(self._job.workers), cut(values, self._job.lanes))
        self._reduction, self._next_round = reduction, round_number + 1
        self._queue(reduction.begin())
        early, self._early = self._early, []
        for message in early:
            self._take(message)
        if not self._serve_until(lambda: reduction.finished):
            return None
        self._reduction = None
        return join(reduction.sums, len(values))

    def flush(self) -> None:
        self._serve_until(lambda: self._sender.finished)

    def linger(self) -> None:
        while not self._context.stopped:
            self._take_in()
            self._context.wait(self._due_us())

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {
            **self._endpoint.report(),
            **self._sender.statistics.to_json(),
            **self._receiver.statistics.to_json(),
        }

    def _silence(self) -> str:
        missing = 0 if self._reduction is None else self._reduction.missing
        return (
            f"no news on the ring {self._patience} in round {self._next_round - 1} "
            f"({missing} of {self._job.fragments_per_round} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return self._sender.deadline_us

    def _take_in(self) -> bool:
        """All that waits, and send what is due: the next worker may need it before this one needs anything more."""
        news = False
        while (received := self._endpoint.receive()) is not None:
            news |= self._take_acknowledgements(received.acknowledgements)
            news |= self._take_data(received.data)
        if sequences := self._sender.transmissions(self._context.now_us()):
            self._endpoint.send([self._in_flight[sequence] for sequence in sequences], sequences)
        return news

    def _send_due(self) -> None:
        """It is sent already."""

    def _take_acknowledgements(self, frames: Frames) -> bool:
        marks = met_congestion(frames, RingFlags.CONGESTION).tolist()
        columns = (frames["sequence"].tolist(), frames["selective"].tolist(), marks)
        acknowledged = [
            sequence
            for number, selective, marked in zip(*columns, strict=True)
            for sequence in self._sender.acknowledge(number, selective, marked, self._context.now_us())
        ]
        for sequence in acknowledged:
            del self._in_flight[sequence]
        return bool(acknowledged)

    def _take_data(self, frames: Frames) -> bool:
        if not len(frames):
            return False
        new = self._receiver.accept(frames["sequence"].tolist())
        # One acknowledgement tells of the whole batch.
        congested = bool(met_congestion(frames, RingFlags.CONGESTION).any())
        self._endpoint.acknowledge(*self._receiver.acknowledgement, congested)
        for message in _messages(frames[np.array(new)]):
            self._take(message)
        return any(new)

    def _take(self, message: RingMessage) -> None:
        if message.round == self._next_round:
            self._early.append(message)
            return
        messages = None if self._reduction is None else self._reduction.accept(message)
        if messages is None:
            self._receiver.statistics.rejected += 1
        else:
            self._queue(messages)

    def _queue(self, messages: list[RingMessage]) -> None:
        for message in messages:
            self._in_flight[self._next_sequence] = message
            self._next_sequence = (self._next_sequence + 1) % PACKET_NUMBERS
        self._sender.queue(len(messages))


def _messages(frames: Frames) -> Iterable[RingMessage]:
    lanes = frames["lanes"].astype(np.int32)
    names = ("round", "step", "fragment_number", "flags", "shift")
    for row, (round_number, step, fragment, flags, shift) in zip(
        lanes, zip(*(frames[name].tolist() for name in names), strict=True), strict=True
    ):
        half = next((flag for flag in (RingFlags.LOW, RingFlags.HIGH) if flags & flag), None)
        yield RingMessage(round_number, step, fragment, row, half, shift)
