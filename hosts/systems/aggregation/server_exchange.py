"""Sums by the parameter server, and by switches on the way to it: the worker's side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from formats.addresses import ip_integer, mac_bytes
from formats.aggregation import Flags
from hosts.agents.context import AgentContext, Interface
from hosts.learning.fragments import cut, join
from hosts.learning.shifted_sums import restored
from hosts.protocols.datagram_frames import met_congestion
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.endpoint import Endpoint, Received, label_array
from hosts.systems.aggregation.paths import aggregation_paths
from hosts.systems.aggregation.sender import Attempt, Sender
from hosts.transport.settling import settle

_RESEND = Flags.RESEND.value
_DIRECT = Attempt.DIRECT


class ServerExchange:
    """hosts.collectives.exchange.Exchange on an open interface."""

    def __init__(self, job: JobDescription, index: int, interface: Interface, context: AgentContext) -> None:
        self._job = job
        self._context = context
        self._bit = 1 << index
        self._labels = label_array(job.designations_of(index))
        self._server_ip = ip_integer(job.server.ip)
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
        self._sender = Sender(
            window_fragments=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            paths=aggregation_paths(job.designations),
            congestion_control=job.congestion_control,
            sliding=job.slot_policy == "static",
        )

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        sums = self._exchange(round_number, cut(values, self._job.lanes))
        return None if sums is None else join(sums, len(values))

    def flush(self) -> None:
        """The server has all that it needs: it has acknowledged."""

    def linger(self) -> None:
        while not self._context.stopped:
            self._context.wait()
            self._endpoint.drain()

    def settle(self) -> None:
        settle(self._context, self._endpoint.receive)

    def report(self) -> dict[str, Any]:
        return {**self._endpoint.report(), **self._sender.statistics.to_json()}

    def _exchange(self, round_number: int, fragments: NDArray[np.int32]) -> NDArray[np.int64] | None:
        """Global sums of the round's fragments, shape like `fragments`; None when stopped."""
        first_number = self._job.first_number(round_number)
        self._sender.begin(first_number, len(fragments), self._context.now_us())
        sums = np.empty(fragments.shape, np.int64)
        progress_us = self._context.now_us()
        while True:
            # All that has arrived comes first: an agent that the scheduler kept waiting must not take the
            # ACKs in its queue for lost.
            while (received := self._endpoint.receive()) is not None:
                if self._take_in(received, sums):
                    progress_us = self._context.now_us()
            if self._sender.finished:
                return sums
            self._transmit(round_number, fragments)
            now = self._context.now_us()
            if now - progress_us > self._job.give_up_us:
                raise UserError(
                    f"no ACK from server {self._job.server.ip} for {self._job.give_up_us / 1e6:g} s in round "
                    f"{round_number} ({self._sender.missing} of {len(fragments)} fragments missing)"
                )
            self._context.wait(self._sender.deadline_us)
            if self._context.stopped:
                return None

    def _transmit(self, round_number: int, fragments: NDArray[np.int32]) -> None:
        batch = self._sender.transmissions(self._context.now_us())
        if not batch:
            return
        chosen = np.array([transmission.fragment for transmission in batch])
        numbers = [self._job.packet_number(round_number, transmission.fragment) for transmission in batch]
        labels = self._labels[np.array(numbers) % len(self._labels)]
        labels[[transmission.attempt is _DIRECT for transmission in batch]] = 0
        self._endpoint.send(
            fragments[chosen],
            packet_numbers=numbers,
            worker_bitmap=self._bit,
            dst_ip=self._server_ip,
            flags=[transmission.attempt.flags for transmission in batch],
            labels=labels,
        )

    def _take_in(self, received: Received, sums: NDArray[np.int64]) -> bool:
        """True if anything was news."""
        frames = received.frames
        self._sender.request(received.requests)
        news = self._sender.acknowledge(
            frames["packet_number"].tolist(),
            (frames["flags"] & _RESEND != 0).tolist(),
            self._context.now_us(),
            met_congestion(frames, Flags.CONGESTION.value).tolist(),
        )
        if news:
            positions, chosen = map(list, zip(*news, strict=True))
            sums[chosen] = restored(frames["lanes"][positions], frames["magnitude"][positions])
        return bool(news)
