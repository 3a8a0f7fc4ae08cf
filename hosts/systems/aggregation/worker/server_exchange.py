"""Sums by the parameter server, and by switches on the way to it: the worker's side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.formats.aggregation import DIRECT
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.systems.aggregation.description import AggregationJob
from gradbed.hosts.systems.aggregation.endpoint import GradientEndpoint, label_array
from gradbed.hosts.systems.aggregation.worker.library import NOTHING_DUE, UNUSUAL
from gradbed.hosts.systems.aggregation.worker.round_frames import RoundFrames
from gradbed.hosts.systems.aggregation.worker.sender import Sender


class ServerExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface."""

    def __init__(self, job: AggregationJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._interface = interface
        groups = dict.fromkeys(job.multicast)
        for group in groups:
            interface.join(mac_bytes(group.mac))
        self._endpoint = GradientEndpoint(
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
            span_fragments=job.span_fragments,
            seed=job.sender_seed(index),
        )
        if self._sender.is_native:
            self._native_turn = self._act

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        self._round = round_number
        self._frames = RoundFrames(self._sender, self._headers, values, self._job.lanes)
        self._sender.begin(self._job.first_number(round_number), self._frames.count, self._context.now_us())
        return self._frames.total() if self._serve_until(lambda: self._sender.finished) else None

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {**self._endpoint.report(), **self._sender.statistics.to_json()}

    def _silence(self) -> str:
        return (
            f"no ACK from server {self._job.server.ip} {self._patience} in round {self._round} "
            f"({self._sender.missing} of {self._frames.count} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return self._sender.deadline_us

    def _send_due(self) -> None:
        frames = self._frames.due(self._context.now_us())
        if frames is not None:
            self._endpoint.send_frames(frames)

    def _act(self) -> int | None:
        """The same as one time around the loop, in C, as long as nothing unusual is among it."""
        beneath = self._interface.uncounted()
        if beneath is None:
            return None
        now_us = self._context.now_us()
        buffer, lengths = beneath.receive()
        outcome, out = self._frames.turn(
            buffer, lengths, self._endpoint.known_headers, self._interface.counts, now_us
        )
        if outcome == UNUSUAL:
            self._interface.keep(buffer, lengths, beneath.times_ns)
            return None
        taken = beneath.send(out) if len(out) else 0
        if taken < len(out):
            self._interface.counts.take_back_sent(out[taken:])
        self._endpoint.count(len(lengths), taken, len(out) - taken)
        if len(lengths):
            self._progress_us = now_us
        give_up_us = self._progress_us + self._give_up_us
        until_us = give_up_us if outcome == NOTHING_DUE else min(outcome, give_up_us)
        return until_us if until_us > now_us else None

    def _take_in(self) -> bool:
        news = False
        while (received := self._endpoint.receive()) is not None:
            if received.requests:
                self._sender.request(received.requests)
            if len(received.frames):
                self._frames.take(received.frames, self._context.now_us())
                # An old sum is the server's sign of life to those who wait for other workers.
                news = True
        return news
