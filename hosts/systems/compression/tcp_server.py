"""The server's side over the kernel's TCP: a connection for each worker, and the sum to each by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from hosts.agents.context import AgentContext
from hosts.agents.tcp import TcpListener, TcpStream
from hosts.compressors.wire import written
from hosts.systems.compression.assembly import Assembly
from hosts.systems.compression.description import JobDescription
from hosts.systems.compression.frames import RECORD_BYTES, Route, end_frame, part_frames
from hosts.systems.compression.packet_format import Flags
from hosts.systems.compression.summation import Summation
from hosts.systems.compression.tcp_records import LENGTH_BYTES, RecordReader, records


@dataclass
class _Worker:
    index: int
    stream: TcpStream
    gradient: Assembly
    reader: RecordReader = field(default_factory=RecordReader)
    is_acknowledged: bool = False

    @property
    def done(self) -> bool:
        """Its gradient of this round is here."""
        return self.gradient.end_sequence is not None


class TcpServer:
    """The parameter server of a job."""

    def __init__(self, job: JobDescription, listener: TcpListener, context: AgentContext) -> None:
        self._context = context
        self._listener = listener
        self._sum = Summation(job, context)
        self._missing = {worker.ip: worker.index for worker in job.workers}
        self._workers: list[_Worker] = []
        self._route = Route(job.job, job.server, job.multicast.ip, job.multicast.mac)

    def run(self) -> None:
        """Serve until stop."""
        context = self._context
        context.emit("ready")
        while not context.stopped:
            context.wait()
            self._accept()
            for worker in list(self._workers):
                self._take_in(worker)
            self._complete_round()
        context.emit("final", statistics={"rejected": self._sum.rejected})
        for worker in self._workers:
            worker.stream.close()

    def _accept(self) -> None:
        while (stream := self._listener.accept()) is not None:
            index = self._missing.pop(stream.peer_ip, None)
            if index is None:
                stream.close()
            else:
                self._workers.append(_Worker(index, stream, self._sum.assembly()))

    def _take_in(self, worker: _Worker) -> None:
        while data := worker.stream.receive():
            for record in worker.reader.take(data):
                worker.gradient.add(record)
            if worker.done and not worker.is_acknowledged:
                worker.is_acknowledged = True
                worker.stream.send(records([end_frame(self._route, self._sum.round, 0, Flags.ACK)]))
        if worker.stream.ended:
            self._workers.remove(worker)
            worker.stream.close()
            if not self._context.stopped:
                # What has come of a gradient counts, if there is anything of it.
                if worker.gradient.values.any():
                    self._sum.add(worker.index, worker.gradient, is_whole=worker.done)
                self._context.emit("left", worker=worker.index, round=self._sum.round)

    def _complete_round(self) -> None:
        if self._missing or not self._workers or not all(worker.done for worker in self._workers):
            return
        for worker in self._workers:
            self._sum.add(worker.index, worker.gradient)
            worker.gradient, worker.is_acknowledged = self._sum.assembly(), False
        number = self._sum.round
        parts = part_frames(self._route, written(self._sum.finish(), RECORD_BYTES + LENGTH_BYTES), number, 0)
        data = records([*parts, end_frame(self._route, number, len(parts))])
        for worker in self._workers:
            worker.stream.send(data)
