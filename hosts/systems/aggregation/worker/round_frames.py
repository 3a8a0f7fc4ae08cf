"""A worker's frames of one round: gradients as they leave, and the sums that come back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.aggregation import GRADIENT, Flags
from formats.datagram import CE, ECN_MASK
from hosts.learning.fragments import fragment_count, join
from hosts.learning.shifted_sums import restored
from hosts.protocols.datagram_frames import Frames, FrameType, as_frames
from hosts.protocols.lane_frames import lane_frame_type
from hosts.systems.aggregation.worker.library import LayoutStruct, sender_library
from hosts.systems.aggregation.worker.sender import Attempt, Sender


class RoundFrames:
    """Of one worker; what is due when, its sender says."""

    def __init__(self, sender: Sender, headers: NDArray[np.uint8], values: NDArray[np.int32], lanes: int) -> None:
        """headers: of its packets, shape (headers, bytes): those that packet numbers take in turn, then that of
        direct copies. values: its gradient, flat. lanes: of a packet."""
        self.count = fragment_count(len(values), lanes)
        """Fragments."""
        self._sender = sender
        self._headers, self._values = np.ascontiguousarray(headers), np.ascontiguousarray(values, np.int32)
        self._sums = np.empty((self.count, lanes), np.int32)
        self._shifts = np.zeros(self.count, np.int64)
        self._frame_type = lane_frame_type(GRADIENT, lanes)
        self._layout = _layout(self._frame_type, lanes)
        self._outgoing = self._headers.ctypes.data, len(headers) - 1, self._values.ctypes.data, len(values)
        self._incoming = self._sums.ctypes.data, self._shifts.ctypes.data

    def due(self, now_us: int) -> Frames | None:
        """What to send now; counts as sent. None: nothing."""
        library, sender = sender_library(), self._sender.pointer
        count = library.gb_sender_transmissions(sender, now_us)
        if not count:
            return None
        rows = np.empty((count, self._frame_type.itemsize), np.uint8)
        library.gb_sender_pack(sender, self._layout, count, *self._outgoing, rows.ctypes.data)
        return as_frames(rows, self._frame_type)

    def take(self, acks: Frames, now_us: int) -> None:
        """Global sums."""
        taken = sender_library().gb_sender_take(
            self._sender.pointer, self._layout, acks.ctypes.data, len(acks), now_us, *self._incoming
        )
        if taken < 0:
            raise MemoryError

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
