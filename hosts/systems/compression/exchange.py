"""A worker's side: sends what it keeps of its gradients, and takes in the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.formats.compression import Flags
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.exchange import Exchange, PacketExchange
from gradbed.hosts.compressors.fingerprint import fingerprint
from gradbed.hosts.protocols.frames import met_congestion
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import (
    Route,
    acknowledgement_frame,
    received_acknowledgements,
    received_parts,
)
from gradbed.hosts.systems.compression.gradients import Assembly, HeldBack
from gradbed.hosts.systems.compression.rate import Pace, RateAdaptation
from gradbed.hosts.systems.compression.transport import GradientMessage, StreamInput, StreamOutput
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, forward_distance
from gradbed.hosts.transport.stream_sender import StreamSender

GOLDEN_SECTION = (5**0.5 - 1) / 2
"""Its multiples are spread evenly over any stretch of rounds, modulo 1."""


class CompressedExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface."""

    def __init__(self, job: CompressionJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._interface = interface
        interface.join(mac_bytes(job.multicast.mac))
        own = job.workers[index]
        self._own_ips = (ip_integer(own.ip), ip_integer(job.multicast.ip))
        self._server_ip = ip_integer(job.server.ip)
        self._route = Route(job.job, own, job.server.ip, own.gateway_mac)
        self._held_back = HeldBack(job, index)
        self._adaptation = RateAdaptation(job)
        first = job.first_packet_number
        sender = StreamSender(
            window_packets=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            congestion_control=job.congestion_control if job.pacing == "none" else "none",
            first_sequence=first,
            seed=job.sender_seed(index),
        )
        self._pace = Pace(job, index, context.now_us())
        self._outgoing = StreamOutput(interface, sender, first, self._pace.bucket)
        self._sender = sender
        self._incoming = StreamInput(
            first,
            every=min(16, max(2, len(job.workers))),
            spread_us=job.min_timeout_us // 2,
            seed=job.sender_seed(index),
        )
        self._acknowledged_bytes = 0
        self._round = 0
        self._is_left = False
        """The server has gone on without this worker, to sums that have begun to come."""
        self._message: GradientMessage | None = None
        """Of the round that is going on, and the sum as far as it has come."""
        self._sum: Assembly | None = None
        self._sent_us: int | None = None
        """When all of it had been acknowledged."""

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        if self._is_left:
            self.linger()
            return None
        content = self._held_back.take(values, round_number)
        message = GradientMessage(content, self._route, round_number, self._outgoing, turn=self._turn(round_number))
        start_us = self._context.now_us()
        self._round, self._message, self._sent_us = round_number, message, None
        self._sum = Assembly(len(values), self._held_back.drawn)
        self._adaptation.begin()
        self._pace.begin(start_us)
        self._acknowledged_bytes = 0
        if not self._serve_until(lambda: self._has_sum() or self._is_left):
            return None
        if not self._has_sum():
            self.linger()
            return None
        total = self._sum.values
        self._held_back.sent(message.sent())
        self._context.emit(
            "exchanged",
            round=round_number,
            sent_seconds=((self._sent_us or self._context.now_us()) - start_us) / 1e6,
            total_bytes=message.total_bytes,
            planned_bytes=message.planned_bytes,
            initial_bps=self._adaptation.own.initial_bps,
            readings=self._adaptation.readings,
            **self._held_back.report(),
        )
        self._sum = None
        return total

    def _turn(self, round_number: int) -> float:
        """Return how far into a gradient sending begins.

        What is on its way cannot be called back: if it were always the same values, always the same would be left
        out.
        """
        if self._job.ratio == "none" or not self._held_back.compressor.can_be_cut:
            return 0.0
        return (GOLDEN_SECTION * round_number + self._index / len(self._job.workers)) % 1

    def _send_due(self) -> None:
        now_us = self._context.now_us()
        if self._sent_us is None:
            self._adapt(now_us)
        self._outgoing.transmit(now_us)

    def _timeout_message(self) -> str:
        return f"no news from server {self._job.server.ip} {self._timeout_text} in round {self._round}"

    def _adapt(self, now_us: int) -> None:
        """Take a reading, if one is due."""
        message = self._message
        assert message is not None
        finding = self._adaptation.read(now_us)
        if finding is None:
            return
        self._pace.read(finding, now_us)
        decision = self._adaptation.decide(finding, message, self._acknowledged_bytes)
        if decision is not None and self._held_back.compressor.can_be_cut:
            message.cut(decision.ratio * message.planned_bytes)

    def _has_sum(self) -> bool:
        if self._sent_us is None and self._outgoing.finished:
            self._sent_us = self._context.now_us()
        end = None if self._sum is None else self._sum.end_sequence
        return end is not None and 0 < forward_distance(end, self._incoming.next_missing) < PACKET_NUMBERS // 2

    def _due_us(self) -> int | None:
        now_us = self._context.now_us()
        times = [self._outgoing.deadline_us(now_us), self._incoming.due_us]
        if self._outgoing.bucket is not None and self._outgoing.finished:
            self._outgoing.bucket.rest(now_us)
        if not self._outgoing.finished:
            times.append(self._adaptation.due_us)
        return min((each for each in times if each is not None), default=None)

    def _take_in(self) -> bool:
        news = False
        while True:
            buffer, lengths = self._interface.receive()
            if not len(lengths):
                self._answer()
                return news
            for frames in received_parts(buffer, lengths, self._job.job):
                mine = np.isin(frames["dst_ip"], self._own_ips) & (frames["src_ip"] == self._server_ip)
                new = self._incoming.accept(frames[mine], self._context.now_us())
                news |= bool(len(new))
                if self._sum is not None:
                    self._sum.add(new[new["round"] == self._round])
                self._is_left |= bool((new["round"] > self._round).any())
            self._answer()
            frames = received_acknowledgements(buffer, lengths, self._job.job)
            for frame, marked in zip(frames, met_congestion(frames, Flags.CONGESTION).tolist(), strict=True):
                if frame["src_ip"] == self._server_ip and frame["dst_ip"] == self._own_ips[0]:
                    news |= self._acknowledge(frame, marked)

    def _answer(self) -> None:
        due_us = self._incoming.due_us
        if due_us is not None and due_us <= self._context.now_us():
            sequence, selective, congested = self._incoming.acknowledgement()
            self._interface.send(acknowledgement_frame(self._route, sequence, selective, congested=congested))

    def linger(self) -> None:
        while not self._context.stopped:
            self._context.wait(self._incoming.due_us)
            self._take_in()

    def _acknowledge(self, frame: Any, marked: bool) -> bool:
        now_us, sequence = self._context.now_us(), int(frame["sequence"])
        news = self._outgoing.acknowledge(sequence, int(frame["selective"]), marked, now_us)
        self._acknowledged_bytes += news.size_bytes
        if news.size_bytes:
            self._adaptation.acknowledged(news, frame, now_us)
        self._pace.acknowledged(sequence, self._outgoing.next_new, int(frame["active"]), now_us, marked=marked)
        return news.size_bytes > 0

    def _count(self) -> object | None:
        return True if self._take_in() else None

    def report(self) -> dict[str, Any]:
        return {**self._sender.statistics.to_json(), "decreases": self._pace.aimd.decreases if self._pace.aimd else 0}


# ---- Fingerprints of gradients and sums ----


class FingerprintReporter:
    """gradbed.hosts.collectives.exchange.Exchange around another, with an event `trained` after each round."""

    def __init__(self, exchange: Exchange, context: AgentContext) -> None:
        self._exchange = exchange
        self._context = context
        self.flush, self.linger, self.drain = exchange.flush, exchange.linger, exchange.drain

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        given = fingerprint(values, len(values))
        handed_over = values.view()
        handed_over.flags.writeable = False
        total = self._exchange.all_reduce(round_number, handed_over)
        if total is not None:
            self._context.emit(
                "trained",
                round=round_number,
                gradient_fingerprint=given,
                sum_fingerprint=fingerprint(total, len(total)),
            )
        return total

    def report(self) -> dict[str, Any]:
        return self._exchange.report()
