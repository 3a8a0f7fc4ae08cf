"""The server's side over the kernel's TCP: a connection for each worker, and the sum to each by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from formats.compression import Flags
from hosts.agents.context import AgentContext
from hosts.agents.tcp import TcpListener, TcpStream
from hosts.compressors.wire import written
from hosts.systems.compression.assembly import Assembly
from hosts.systems.compression.description import JobDescription
from hosts.systems.compression.packets.frames import RECORD_BYTES, Route, end_frame, part_frames
from hosts.systems.compression.silence import Silence
from hosts.systems.compression.summation import Summation
from hosts.systems.compression.tcp.tcp_records import LENGTH_BYTES, RecordReader, records


@dataclass
class _Worker:
    index: int
    gradient: Assembly
    heard_us: int
    stream: TcpStream | None = None
    """None: it has not connected yet."""
    reader: RecordReader = field(default_factory=RecordReader)
    is_acknowledged: bool = False

    @property
    def done(self) -> bool:
        return self.gradient.end_sequence is not None


class TcpServer:
    """The parameter server of a job."""

    def __init__(self, job: JobDescription, listener: TcpListener, context: AgentContext) -> None:
        self._context = context
        self._listener = listener
        self._sum = Summation(job, context)
        self._silence = Silence(job.left_after_us)
        now_us = context.now_us()
        self._workers = {worker.ip: _Worker(worker.index, self._sum.assembly(), now_us) for worker in job.workers}
        self._route = Route(job.job, job.server, job.multicast.ip, job.multicast.mac)

    def run(self) -> None:
        """Serve until stop."""
        context = self._context
        context.emit("ready")
        while not context.stopped:
            context.wait(self._silence.ends_us(self._workers))
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
            if worker.done and not worker.is_acknowledged:
                worker.is_acknowledged = True
                worker.stream.send(records([end_frame(self._route, self._sum.round, 0, Flags.ACK)]))

    def _find_left(self) -> None:
        """Nobody waits any longer for workers whose connections have ended, or who have been silent for too long;
        what has come of their gradients counts."""
        if self._context.stopped:
            return
        ended = [ip for ip, worker in self._workers.items() if worker.stream is not None and worker.stream.ended]
        for ip in dict.fromkeys([*ended, *self._silence.left(self._workers, self._context.now_us())]):
            worker = self._workers.pop(ip)
            if worker.stream is not None:
                worker.stream.close()
            self._sum.add(worker.index, worker.gradient, is_whole=worker.done)
            self._context.emit("left", worker=worker.index, round=self._sum.round)

    def _complete_round(self) -> None:
        if not self._workers or not all(worker.done for worker in self._workers.values()):
            return
        for worker in self._workers.values():
            self._sum.add(worker.index, worker.gradient)
            worker.gradient, worker.is_acknowledged = self._sum.assembly(), False
            worker.heard_us = self._context.now_us()
        number = self._sum.round
        parts = part_frames(self._route, written(self._sum.finish(), RECORD_BYTES + LENGTH_BYTES), number, 0)
        data = records([*parts, end_frame(self._route, number, len(parts))])
        for worker in self._workers.values():
            assert worker.stream is not None
            worker.stream.send(data)
