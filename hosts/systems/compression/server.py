"""The server's side: adds up what workers send of their gradients, and sends the sum to all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradbed.formats.addresses import ip_integer
from gradbed.formats.compression import Flags
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.wire import written
from gradbed.hosts.protocols.frames import Frames, met_congestion, only
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import (
    HEADER_BYTES,
    MOST_FRAME_BYTES,
    Route,
    acknowledgement_frame,
    end_frame,
    part_frames,
    received_acknowledgements,
    received_parts,
)
from gradbed.hosts.systems.compression.parameter_server import ParameterServer, ServedWorker
from gradbed.hosts.systems.compression.transport import StreamInput, StreamOutput
from gradbed.hosts.transport.draining import drain
from gradbed.hosts.transport.pacing import TokenBucket
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, GroupAcknowledgement, forward_distance
from gradbed.hosts.transport.stream_sender import StreamSender

ACKNOWLEDGE_EVERY = 1
"""Packets of a worker: with fewer acknowledgements its window would open by pairs, and its rate read unsteadily."""


@dataclass(kw_only=True)
class _PacketWorker(ServedWorker):
    route: Route
    incoming: StreamInput


class CompressionServer(ParameterServer[int, _PacketWorker]):
    """Over packets of this system. Workers by their IP addresses as integers."""

    def __init__(self, job: CompressionJob, interface: Interface, context: AgentContext) -> None:
        super().__init__(job, context)
        self._job = job
        self._interface = interface
        first = job.first_packet_number
        now_us = context.now_us()
        gateway = job.server.gateway_mac
        self._workers = {
            ip_integer(worker.ip): _PacketWorker(
                index=worker.index,
                gradient=self._sum.assembly(),
                heard_us=now_us,
                route=Route(job.job, job.server, worker.ip, gateway),
                incoming=StreamInput(first, ACKNOWLEDGE_EVERY),
            )
            for worker in job.workers
        }
        self._group = GroupAcknowledgement(self._workers, first)
        self._arrived_bytes = 0
        sender = StreamSender(
            window_packets=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            congestion_control="none" if job.server_link_bps else job.congestion_control,
            first_sequence=first,
            seed=job.sender_seed(len(job.workers)),
        )
        self._sender = sender
        bucket = None
        if job.server_link_bps is not None:
            bucket = TokenBucket(job.server_link_bps, MOST_FRAME_BYTES, now_us)
        self._outgoing = StreamOutput(interface, sender, first, bucket)

    def run(self) -> None:
        """Serve until stop."""
        context = self._context
        context.emit("ready")
        while not context.stopped:
            self._take_in()
            now_us = context.now_us()
            self._find_left(now_us)
            self._complete_round()
            self._outgoing.transmit(context.now_us())
            self._wait(now_us)
        drain(context, lambda: True if self._take_in() else None)
        context.emit("final", statistics={**self._sender.statistics.to_json(), "rejected": self._sum.rejected})

    def _wait(self, now_us: int) -> None:
        times = [self._outgoing.deadline_us(now_us), self._timeout_us()]
        if self._outgoing.bucket is not None and self._outgoing.finished:
            self._outgoing.bucket.rest(now_us)
        self._context.wait(min((each for each in times if each is not None), default=None))

    def _find_left(self, now_us: int) -> None:
        left = self._silent(now_us)
        for ip in left:
            self._leave(ip)
            self._group.leave(ip)
        if left:
            self._take_group_news(congested=False)

    def _send(self, number: int, content: Content) -> None:
        made = written(content, HEADER_BYTES)
        self._outgoing.queue(part_frames(self._route, made, number, self._outgoing.next_sequence))
        self._outgoing.queue([end_frame(self._route, number, self._outgoing.next_sequence)])

    def _take_in(self) -> bool:
        """Take in all that waits. True if there was anything."""
        news = False
        while True:
            buffer, lengths = self._interface.receive()
            if not len(lengths):
                return news
            news = True
            for frames in received_parts(buffer, lengths, self._job.job):
                self._take_parts(frames)
            self._acknowledge()
            self._take_acknowledgements(received_acknowledgements(buffer, lengths, self._job.job))

    def _take_parts(self, frames: Frames) -> None:
        for ip in dict.fromkeys(frames["src_ip"].tolist()):
            worker = self._workers.get(ip)
            if worker is None:
                continue
            worker.heard_us = self._context.now_us()
            self._arrived_bytes += frames.itemsize * int(np.count_nonzero(frames["src_ip"] == ip))
            new = worker.incoming.accept(only(frames, frames["src_ip"] == ip), self._context.now_us())
            worker.gradient.add(new)
            end = worker.gradient.end_sequence
            worker.done = (
                end is not None and 0 < forward_distance(end, worker.incoming.next_missing) < PACKET_NUMBERS // 2
            )

    def _acknowledge(self) -> None:
        told = {
            "active": sum(not worker.done for worker in self._workers.values()),
            "arrived_bytes": self._arrived_bytes,
            "time_us": self._context.now_us(),
        }
        for worker in self._workers.values():
            if worker.incoming.due_us is not None:
                sequence, selective, congested = worker.incoming.acknowledgement()
                self._interface.send(
                    acknowledgement_frame(worker.route, sequence, selective, congested=congested, **told)
                )

    def _take_acknowledgements(self, frames: Frames) -> None:
        if not len(frames):
            return
        columns = (frames["src_ip"].tolist(), frames["sequence"].tolist(), frames["selective"].tolist())
        for ip, sequence, selective in zip(*columns, strict=True):
            self._group.take(ip, sequence, selective)
            if ip in self._workers:
                self._workers[ip].heard_us = self._context.now_us()
        self._take_group_news(bool(met_congestion(frames, Flags.CONGESTION).any()))

    def _take_group_news(self, congested: bool) -> None:
        told = self._group.acknowledgement
        if told is not None:
            self._outgoing.acknowledge(*told, congested, self._context.now_us())
