"""The server's side over the kernel's TCP: a connection for each worker, and the sum to each by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.formats.compression import Flags
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.tcp import TcpListener, TcpStream
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.wire import written
from gradbed.hosts.systems.compression.description import JobDescription
from gradbed.hosts.systems.compression.packets.frames import RECORD_BYTES, end_frame, part_frames
from gradbed.hosts.systems.compression.parameter_server import ParameterServer, Worker
from gradbed.hosts.systems.compression.tcp.tcp_records import LENGTH_BYTES, RecordReader, records


@dataclass(kw_only=True)
class _Worker(Worker):
    stream: TcpStream | None = None
    """None: it has not connected yet."""
    reader: RecordReader = field(default_factory=RecordReader)


class TcpServer(ParameterServer[str, _Worker]):
    """Workers by their IP addresses."""

    def __init__(self, job: JobDescription, listener: TcpListener, context: AgentContext) -> None:
        super().__init__(job, context)
        self._listener = listener
        now_us = context.now_us()
        self._workers = {
            worker.ip: _Worker(index=worker.index, gradient=self._sum.assembly(), heard_us=now_us)
            for worker in job.workers
        }

    def run(self) -> None:
        """Serve until stop."""
        context = self._context
        context.emit("ready")
        while not context.stopped:
            context.wait(self._patience_ends_us())
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

    def _take_in(self, worker: _Worker) -> None:
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
