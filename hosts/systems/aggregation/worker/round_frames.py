"""A worker's frames of one round: gradients as they leave, and the sums that come back."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.aggregation import GRADIENT, Flags
from gradbed.formats.datagram import CE, ECN_MASK
from gradbed.hosts.agents.frames.counts import InterfaceCounts
from gradbed.hosts.learning.fragments import fragment_count, join, restored
from gradbed.hosts.protocols.frames import Frames, FrameType, as_frames, lane_frame_type
from gradbed.hosts.systems.aggregation.worker.library import (
    NO_MEMORY,
    UNUSUAL,
    LayoutStruct,
    WorkerStruct,
    sender_library,
)
from gradbed.hosts.systems.aggregation.worker.sender import Attempt, Sender


class Turn(NamedTuple):
    """outcome: when something is due next (microseconds), or what library.py has. out: frames that leave, valid until
    the next turn of any worker."""

    outcome: int
    out: NDArray[np.uint8]


@functools.cache
def _room(frames: int, frame_bytes: int) -> NDArray[np.uint8]:
    """For what leaves in a turn, of all workers: nobody else acts meanwhile."""
    return np.empty((frames, frame_bytes), np.uint8)


class RoundFrames:
    """Of one worker; what is due when, its sender says."""

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
        """What to send now; counts as sent. None: nothing."""
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

    def turn(
        self,
        buffer: NDArray[np.uint8],
        lengths: NDArray[np.uint32],
        known: NDArray[np.uint8],
        counts: InterfaceCounts,
        now_us: int,
    ) -> Turn:
        """Both, in one call, as gradbed.hosts.agents.card.Uncounted gives frames.

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
        outcome = self._library.gb_worker_turn(
            worker, buffer.ctypes.data, buffer.strides[0], lengths.ctypes.data, came, now_us
        )
        if outcome == NO_MEMORY:
            raise MemoryError
        if outcome != UNUSUAL:
            counts.received_frames += came
            counts.received_bytes += came * frame_bytes
            counts.sent_frames += worker.sent
            counts.sent_bytes += worker.sent * frame_bytes
        return Turn(outcome, self._out[: worker.sent])

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
