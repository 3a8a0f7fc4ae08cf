"""A worker's side over the kernel's TCP: the baseline that paces and adapts by nothing of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats.compression import Flags
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.tcp import TcpStream, retransmitted_segments
from gradbed.hosts.collectives.exchange import KernelExchange
from gradbed.hosts.compressors.wire import written
from gradbed.hosts.systems.compression.assembly import Assembly
from gradbed.hosts.systems.compression.description import JobDescription
from gradbed.hosts.systems.compression.held_back import HeldBack
from gradbed.hosts.systems.compression.packets.frames import RECORD_BYTES, Route, end_frame, part_frames
from gradbed.hosts.systems.compression.tcp.tcp_records import LENGTH_BYTES, RecordReader, records

_ACK = int(Flags.ACK)


class TcpExchange(KernelExchange):
    """gradbed.hosts.collectives.exchange.Exchange on a connection to the server."""

    def __init__(self, job: JobDescription, index: int, stream: TcpStream, context: AgentContext) -> None:
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
