"""Sums by the parameter server, and by switches on the way to it: the worker's side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.addresses import ip_integer, mac_bytes
from formats.aggregation import DIRECT, Flags
from hosts.agents.context import AgentContext, Interface
from hosts.collectives.exchange import PacketExchange
from hosts.learning.fragments import cut, join
from hosts.learning.shifted_sums import restored
from hosts.protocols.datagram_frames import met_congestion
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.endpoint import Endpoint, Received, label_array
from hosts.systems.aggregation.gradient_frames import magnitudes
from hosts.systems.aggregation.sender import Attempt, Sender
from hosts.transport.packet_numbers import PACKET_NUMBERS

_RESEND = Flags.RESEND.value


class ServerExchange(PacketExchange):
    """hosts.collectives.exchange.Exchange on an open interface."""

    def __init__(self, job: JobDescription, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        groups = dict.fromkeys(job.multicast)
        for group in groups:
            interface.join(mac_bytes(group.mac))
        self._endpoint = Endpoint(
            job,
            job.workers[index],
            [job.server],
            interface,
            sends_acknowledgements=False,
            group_ips=[group.ip for group in groups],
        )
        labels = label_array([*job.designations_of(index), DIRECT])
        self._headers = self._endpoint.headers(labels, worker_bitmap=1 << index, dst_ip=ip_integer(job.server.ip))
        self._sender = Sender(
            window_fragments=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            paths=job.paths,
            congestion_control=job.congestion_control,
            sliding=job.slot_policy == "static",
        )

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        self._round, self._fragments, count = round_number, cut(values, self._job.lanes), len(values)
        del values  # often nobody else keeps them, and 512 workers with a million each have two gigabytes
        self._magnitudes = magnitudes(self._fragments)
        self._first_number = self._job.first_number(round_number)
        self._sender.begin(self._first_number, len(self._fragments), self._context.now_us())
        self._lanes = np.empty_like(self._fragments)
        self._shifts = np.zeros(len(self._fragments), np.int64)
        if not self._serve_until(lambda: self._sender.finished):
            return None
        return join(restored(self._lanes, self._shifts), count)

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {**self._endpoint.report(), **self._sender.statistics.to_json()}

    def _silence(self) -> str:
        return (
            f"no ACK from server {self._job.server.ip} {self._patience} in round {self._round} "
            f"({self._sender.missing} of {len(self._fragments)} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return self._sender.deadline_us

    def _send_due(self) -> None:
        batch = self._sender.transmissions(self._context.now_us())
        if not batch:
            return
        fragments, attempts = zip(*batch, strict=True)
        rows = as_slice(fragments)
        numbers = (self._first_number + np.array(fragments)) % PACKET_NUMBERS
        headers = numbers % (len(self._headers) - 1)
        if Attempt.DIRECT in attempts:
            headers[[attempt is Attempt.DIRECT for attempt in attempts]] = -1
        self._endpoint.send_with_headers(
            self._headers.take(headers, axis=0),
            self._fragments[rows],
            packet_numbers=numbers,
            flags=[attempt.flags for attempt in attempts],
            magnitude=self._magnitudes[rows],
        )

    def _take_in(self) -> bool:
        news = False
        while (received := self._endpoint.receive()) is not None:
            news |= self._take(received)
        return news

    def _take(self, received: Received) -> bool:
        frames = received.frames
        if received.requests:
            self._sender.request(received.requests)
        news = self._sender.acknowledge(
            frames["packet_number"].tolist(),
            [flags & _RESEND != 0 for flags in frames["flags"].tolist()],
            self._context.now_us(),
            met_congestion(frames, Flags.CONGESTION.value).tolist(),
        )
        if news:
            positions, fragments = zip(*news, strict=True)
            chosen = frames if len(news) == len(frames) else frames[list(positions)]
            rows = as_slice(fragments)
            self._lanes[rows] = chosen["lanes"]
            self._shifts[rows] = chosen["magnitude"]
        # An old sum is the server's sign of life to those who wait for other workers.
        return len(frames) > 0


def as_slice(numbers: Sequence[int]) -> slice | list[int]:
    """Selects the same elements of an array; those that follow each other without a copy."""
    first, last = numbers[0], numbers[-1]
    if last - first == len(numbers) - 1 and all(map(lt, numbers, islice(numbers, 1, None))):
        return slice(first, last + 1)
    return list(numbers)
