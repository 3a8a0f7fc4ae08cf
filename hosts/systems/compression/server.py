"""The parameter server: rounds, sums and workers that left, whatever the transport; and the server over packets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer
from gradbed.formats.compression import Flags
from gradbed.hosts.agents.context import AgentContext, Interface, drain
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
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
from gradbed.hosts.systems.compression.gradients import Assembly, DrawnPlaces, job_compressor
from gradbed.hosts.systems.compression.transport import StreamInput, StreamOutput
from gradbed.hosts.transport.pacing import TokenBucket
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, GroupAcknowledgement, forward_distance
from gradbed.hosts.transport.stream_sender import StreamSender

# ---- The sum of a round, and the events that report it ----


_INT32 = np.iinfo(np.int32)


class Summation:
    """Round by round."""

    def __init__(self, job: CompressionJob, context: AgentContext) -> None:
        self._compressor = job_compressor(job, 0)
        self._values = job.values
        self._drawn = DrawnPlaces(self._compressor, job.values)
        self._context = context
        self._total: NDArray[np.int64] = np.zeros(job.values, np.int64)
        self.round = 0
        self.rejected = 0
        """Parts that made no sense."""

    def assembly(self) -> Assembly:
        """Return an empty assembly for a worker's gradient."""
        return Assembly(self._compressor.length(self._values), self._drawn)

    def add(self, worker: int, gradient: Assembly, *, is_whole: bool = True) -> None:
        """Add a worker's gradient. One of which only a part has come counts if it can be read without the rest."""
        self.rejected += gradient.rejected
        if not (is_whole or self._compressor.is_placewise):
            return
        values = self._compressor.restored(gradient.values)
        self._total += values
        found = gradient.fingerprint if self._compressor.is_placewise else fingerprint(values, len(values))
        self._context.emit("received", worker=worker, round=self.round, fingerprint=found)

    def finish(self) -> Content:
        """The sum, to be sent back; the next round begins."""
        total, self._total = self._total, np.zeros_like(self._total)
        self._context.emit("sum", round=self.round, fingerprint=fingerprint(total, len(total)) % MODULUS)
        content = _content(total, self._drawn(self.round))
        self.round += 1
        return content


def _content(total: NDArray[np.int64], drawn: NDArray[np.intp] | None) -> Content:
    """The values that are not zero, with 64 bits where some sum does not fit 32."""
    values = total if drawn is None else total[drawn]
    fits = _INT32.min <= values.min(initial=0) and values.max(initial=0) <= _INT32.max
    positions = np.flatnonzero(values)
    return Content(len(total), values[positions], 32 if fits else 64, indices=positions, drawn=drawn)


# ---- The server, whatever its transport ----


@dataclass(kw_only=True)
class ServedWorker:
    """A worker as the server sees it."""

    index: int
    gradient: Assembly
    heard_us: int
    done: bool = False
    """Whether its gradient of this round is here."""


Key = TypeVar("Key")
Kind = TypeVar("Kind", bound=ServedWorker)


class ParameterServer(ABC, Generic[Key, Kind]):
    """The parameter server of a job.

    A worker that is silent for left_after_us, while another worker's gradient is here, has left.
    """

    _workers: dict[Key, Kind]
    """Those that take part; a server fills it when it is made."""

    def __init__(self, job: CompressionJob, context: AgentContext) -> None:
        self._context = context
        self._sum = Summation(job, context)
        self._route = Route(job.job, job.server, job.multicast.ip, job.multicast.mac)
        self._left_after_us = job.left_after_us

    @abstractmethod
    def _send(self, number: int, content: Content) -> None:
        """A round's sum, to all workers."""

    def _complete_round(self) -> None:
        """Once all gradients are here."""
        if not self._workers or not all(worker.done for worker in self._workers.values()):
            return
        for worker in self._workers.values():
            self._sum.add(worker.index, worker.gradient)
            worker.gradient, worker.done = self._sum.assembly(), False
            worker.heard_us = self._context.now_us()
        number = self._sum.round
        self._send(number, self._sum.finish())

    def _leave(self, key: Key) -> Kind:
        """Stop waiting for this worker; the part of its gradient that has arrived counts."""
        worker = self._workers.pop(key)
        self._sum.add(worker.index, worker.gradient, is_whole=worker.done)
        self._context.emit("left", worker=worker.index, round=self._sum.round)
        return worker

    def _silent(self, now_us: int) -> list[Key]:
        """Return the workers that have been silent for too long."""
        return [key for key in self._waited_for() if now_us - self._workers[key].heard_us >= self._left_after_us]

    def _timeout_us(self) -> int | None:
        """Return when some worker will have been silent for too long; None: none is waited for."""
        times = [self._workers[key].heard_us for key in self._waited_for()]
        return min(times) + self._left_after_us if times else None

    def _waited_for(self) -> list[Key]:
        missing = [key for key, worker in self._workers.items() if not worker.done]
        return missing if len(missing) < len(self._workers) else []


# ---- The server over packets ----


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
