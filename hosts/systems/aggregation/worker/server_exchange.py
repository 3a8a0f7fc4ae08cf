"""Sums by the parameter server, and by switches on the way to it: the worker's side."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.formats.aggregation import DIRECT, GRADIENT, Flags
from gradbed.formats.datagram import CE, ECN_MASK
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.agents.frames.counts import InterfaceCounts
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.learning.fragments import fragment_count, join, restored
from gradbed.hosts.protocols.frames import Frames, FrameType, as_frames, lane_frame_type
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.hosts.systems.aggregation.endpoint import GradientEndpoint, label_array
from gradbed.hosts.systems.aggregation.worker.library import (
    NO_MEMORY,
    NOTHING_DUE,
    UNUSUAL,
    LayoutStruct,
    WorkerStruct,
    sender_library,
)
from gradbed.hosts.systems.aggregation.worker.sender import Attempt, Sender


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
            self._fast_path = self._act

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        self._round = round_number
        self._frames = RoundFrames(self._sender, self._headers, values, self._job.lanes)
        self._sender.begin(self._job.first_number(round_number), self._frames.count, self._context.now_us())
        return self._frames.total() if self._serve_until(lambda: self._sender.finished) else None

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {**self._endpoint.report(), **self._sender.statistics.to_json()}

    def _timeout_message(self) -> str:
        return (
            f"no ACK from server {self._job.server.ip} {self._timeout_text} in round {self._round} "
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
        beneath = self._interface.raw_frames()
        if beneath is None:
            return None
        now_us = self._context.now_us()
        buffer, lengths = beneath.receive()
        outcome, out = self._frames.fast_path(
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


# ---- Frames of one round ----


class FastPathResult(NamedTuple):
    """The outcome of one call of a worker's fast path."""

    outcome: int
    """When something is due next (microseconds), or a constant of library.py."""
    out: NDArray[np.uint8]
    """Frames that leave, valid until the next call for any worker."""


@functools.cache
def _room(frames: int, frame_bytes: int) -> NDArray[np.uint8]:
    """Return room for what leaves in one call, of all workers: no two of them act at a time."""
    return np.empty((frames, frame_bytes), np.uint8)


class RoundFrames:
    """The frames of one worker's round; what is due when, its sender says."""

    def __init__(self, sender: Sender, headers: NDArray[np.uint8], values: NDArray[np.int32], lanes: int) -> None:
        """headers: of its packets, shape (headers, bytes): those that packet numbers take in turn, then that of
        direct copies. values: its gradient, flat. lanes: of a packet."""
        self.count = fragment_count(len(values), lanes)
        """Fragments."""
        self._headers, self._values = np.ascontiguousarray(headers), np.ascontiguousarray(values, np.int32)
        self._sums = np.empty((self.count, lanes), np.int32)
        self._shifts = np.zeros(self.count, np.int64)
        self._known: NDArray[np.uint8] | None = None
        self._counts: InterfaceCounts | None = None
        self._library = sender_library()
        self._frame_type = lane_frame_type(GRADIENT, lanes)
        self._out = _room(sender.window_fragments, self._frame_type.itemsize)
        self._worker = WorkerStruct(
            sender=sender.pointer,
            layout=_layout(self._frame_type, lanes),
            headers=self._headers.ctypes.data,
            header_count=len(headers) - 1,
            gradient=self._values.ctypes.data,
            values=len(values),
            out=self._out.ctypes.data,
            sums=self._sums.ctypes.data,
            shifts=self._shifts.ctypes.data,
        )

    def due(self, now_us: int) -> Frames | None:
        """Return what to send now; counts as sent. None: nothing."""
        worker = self._worker
        count = self._library.gb_sender_transmissions(worker.sender, now_us)
        if not count:
            return None
        rows = np.empty((count, self._frame_type.itemsize), np.uint8)
        self._library.gb_sender_pack(
            worker.sender,
            worker.layout,
            count,
            worker.headers,
            worker.header_count,
            worker.gradient,
            worker.values,
            rows.ctypes.data,
        )
        return as_frames(rows, self._frame_type)

    def take(self, acks: Frames, now_us: int) -> None:
        """Global sums."""
        worker = self._worker
        taken = self._library.gb_sender_take(
            worker.sender,
            worker.layout,
            acks.ctypes.data,
            acks.itemsize,
            len(acks),
            now_us,
            worker.sums,
            worker.shifts,
        )
        if taken < 0:
            raise MemoryError

    def fast_path(
        self,
        buffer: NDArray[np.uint8],
        lengths: NDArray[np.uint32],
        known: NDArray[np.uint8],
        counts: InterfaceCounts,
        now_us: int,
    ) -> FastPathResult:
        """Take in ACKs and return what is due, in one call, as gradbed.hosts.agents.nic.RawFrames gives frames.

        buffer: shape (frames, capacity in bytes). lengths: of each. known: first bytes of frames that are taken in,
        shape (headers, bytes). counts: the interface's, for what comes and leaves. MemoryError.
        """
        worker, frame_bytes = self._worker, self._frame_type.itemsize
        if known is not self._known:
            self._known, worker.known = known, known.ctypes.data
            worker.known_count, worker.known_bytes = known.shape
        if counts is not self._counts:
            self._counts, sent, received = counts, counts.sent_classes, counts.received_classes
            worker.words, worker.word_count = sent.words, sent.word_count
            worker.sent_classes, worker.received_classes = sent.address, received.address
        came = len(lengths)
        outcome = self._library.gb_worker_fast_path(
            worker, buffer.ctypes.data, buffer.strides[0], lengths.ctypes.data, came, now_us
        )
        if outcome == NO_MEMORY:
            raise MemoryError
        if outcome != UNUSUAL:
            counts.received_frames += came
            counts.received_bytes += came * frame_bytes
            counts.sent_frames += worker.sent
            counts.sent_bytes += worker.sent * frame_bytes
        return FastPathResult(outcome, self._out[: worker.sent])

    def total(self) -> NDArray[np.int64]:
        """The sum of all gradients once the round is finished, flat."""
        return join(restored(self._sums, self._shifts), len(self._values))


def _layout(dtype: FrameType, lanes: int) -> LayoutStruct:
    assert dtype.fields is not None
    places = {name: dtype.fields[name][1] for name in ("tos", "flags", "packet_number", "magnitude")}
    return LayoutStruct(
        frame_bytes=dtype.itemsize,
        lanes=lanes,
        **places,
        ecn_mask=ECN_MASK,
        ce=CE,
        after_resend=int(Flags.RESEND),
        congestion=int(Flags.CONGESTION),
        of_attempt=tuple(attempt.flags for attempt in Attempt),
    )
