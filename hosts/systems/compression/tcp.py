"""Compression over the kernel's TCP: the baseline that paces and adapts by nothing of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats.compression import PART_VERSION, Flags
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.tcp import TcpListener, TcpStream, retransmitted_segments
from gradbed.hosts.collectives.exchange import KernelExchange
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.protocols.frames import Frames
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import (
    HEADER_BYTES,
    RECORD_BYTES,
    Route,
    end_frame,
    part_frames,
    record_type,
)
from gradbed.hosts.systems.compression.gradients import Assembly, HeldBack
from gradbed.hosts.systems.compression.server import ParameterServer, ServedWorker

# ---- Parts on a stream: each behind two bytes that tell how long it is ----


LENGTH_BYTES = 2


def records(frames: Iterable[NDArray[np.uint8]]) -> bytes:
    """Return what whole frames have behind UDP, one record after the other."""
    parts = [frame[HEADER_BYTES - RECORD_BYTES :].tobytes() for frame in frames]
    return b"".join(len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts)


class RecordReader:
    """Puts records together again."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def take(self, data: bytes) -> list[Frames]:
        """The records that are complete now, each as an array of one. ValueError for what is none."""
        self._waiting += data
        found, start = [], 0
        while len(self._waiting) - start >= LENGTH_BYTES:
            length = int.from_bytes(self._waiting[start : start + LENGTH_BYTES], "big")
            end = start + LENGTH_BYTES + length
            if length < RECORD_BYTES:
                raise ValueError(f"a record of {length} bytes")
            if end > len(self._waiting):
                break
            record = np.frombuffer(bytes(self._waiting[end - length : end]), record_type(length - RECORD_BYTES))
            if record["version"][0] != PART_VERSION:
                raise ValueError(f"a record of version {record['version'][0]}")
            found.append(record)
            start = end
        del self._waiting[:start]
        return found


# ---- The worker's side ----


_ACK = int(Flags.ACK)


class TcpExchange(KernelExchange):
    """gradbed.hosts.collectives.exchange.Exchange on a connection to the server."""

    def __init__(self, job: CompressionJob, index: int, stream: TcpStream, context: AgentContext) -> None:
        super().__init__(context)
        self._job = job
        own = job.workers[index]
        self._route = Route(job.job, own, job.server.ip, own.gateway_mac)
        self._held_back = HeldBack(job, index)
        self._segments_before = retransmitted_segments()
        self._reader = RecordReader()
        self._stream = stream

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        job, context = self._job, self._context
        content = self._held_back.take(values, round_number)
        start_us = progress_us = context.now_us()
        made = written(content, RECORD_BYTES + LENGTH_BYTES)
        parts = part_frames(self._route, made, round_number, 0)
        data = records([*parts, end_frame(self._route, round_number, len(parts))])
        self._stream.send(data)
        total, sent_us = Assembly(len(values), self._held_back.drawn), start_us
        while total.end_sequence is None:
            context.wait(progress_us + job.give_up_us)
            if context.stopped:
                return None
            for record in self._reader.take(self._stream.receive()):
                progress_us = context.now_us()
                if record["flags"][0] & _ACK:
                    sent_us = progress_us
                else:
                    total.add(record)
            if self._stream.ended and total.end_sequence is None:
                raise UserError(f"server {job.server.ip} has closed its connection in round {round_number}")
            if context.now_us() - progress_us >= job.give_up_us:
                raise UserError(
                    f"no news from server {job.server.ip} for {job.give_up_us / 1e6:g} s in round {round_number}"
                )
        self._held_back.sent([content])
        context.emit(
            "exchanged",
            round=round_number,
            sent_seconds=(sent_us - start_us) / 1e6,
            total_bytes=len(data),
            planned_bytes=len(data),
            initial_bps=None,
            readings=[],
            **self._held_back.report(),
        )
        return total.values

    def report(self) -> dict[str, Any]:
        return {"timeout_resends": retransmitted_segments() - self._segments_before, "early_resends": 0}


# ---- The server's side: a connection for each worker, and the sum to each by itself ----


@dataclass(kw_only=True)
class _TcpWorker(ServedWorker):
    stream: TcpStream | None = None
    """None: it has not connected yet."""
    reader: RecordReader = field(default_factory=RecordReader)


class TcpServer(ParameterServer[str, _TcpWorker]):
    """Workers by their IP addresses."""

    def __init__(self, job: CompressionJob, listener: TcpListener, context: AgentContext) -> None:
        super().__init__(job, context)
        self._listener = listener
        now_us = context.now_us()
        self._workers = {
            worker.ip: _TcpWorker(index=worker.index, gradient=self._sum.assembly(), heard_us=now_us)
            for worker in job.workers
        }

    def run(self) -> None:
        """Serve until stop."""
        context = self._context
        context.emit("ready")
        while not context.stopped:
            context.wait(self._timeout_us())
            self._accept()
            for worker in self._workers.values():
                self._take_in(worker)
            self._find_left()
            self._complete_round()
        context.emit("final", statistics={"rejected": self._sum.rejected})
        for worker in self._workers.values():
            if worker.stream is not None:
                worker.stream.close()

    def _accept(self) -> None:
        while (stream := self._listener.accept()) is not None:
            worker = self._workers.get(stream.peer_ip)
            if worker is None or worker.stream is not None:
                stream.close()
            else:
                worker.stream = stream

    def _take_in(self, worker: _TcpWorker) -> None:
        while worker.stream is not None and (data := worker.stream.receive()):
            worker.heard_us = self._context.now_us()
            for record in worker.reader.take(data):
                worker.gradient.add(record)
            if not worker.done and worker.gradient.end_sequence is not None:
                worker.done = True
                worker.stream.send(records([end_frame(self._route, self._sum.round, 0, Flags.ACK)]))

    def _find_left(self) -> None:
        """Workers whose connections have ended, or who have been silent for too long."""
        if self._context.stopped:
            return
        ended = [ip for ip, worker in self._workers.items() if worker.stream is not None and worker.stream.ended]
        for ip in dict.fromkeys([*ended, *self._silent(self._context.now_us())]):
            worker = self._leave(ip)
            if worker.stream is not None:
                worker.stream.close()

    def _send(self, number: int, content: Content) -> None:
        parts = part_frames(self._route, written(content, RECORD_BYTES + LENGTH_BYTES), number, 0)
        data = records([*parts, end_frame(self._route, number, len(parts))])
        for worker in self._workers.values():
            assert worker.stream is not None
            worker.stream.send(data)
