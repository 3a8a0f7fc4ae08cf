"""What comes from one other agent: which parts are new, and when to acknowledge them."""

from __future__ import annotations

import numpy as np

from formats.compression import Flags
from hosts.protocols.datagram_frames import Frames, met_congestion, only
from hosts.systems.compression.packets.frames import is_end
from hosts.transport.stream_receiver import StreamReceiver


class Incoming:
    """The receiver's side of a stream. An acknowledgement is due after every `every` packets, at a gap, at a copy,
    and at the end of a gradient."""

    def __init__(self, first_sequence: int, every: int) -> None:
        self._receiver = StreamReceiver(first_sequence)
        self._every = every
        self._untold = 0
        self._at_once = False
        self._congested = False

    def accept(self, frames: Frames) -> Frames:
        """Those that are new."""
        new = np.array(self._receiver.accept(frames["sequence"].tolist()), np.bool_)
        self._congested |= bool(met_congestion(frames, Flags.CONGESTION).any())
        self._untold += len(frames)
        self._at_once |= bool(is_end(frames).any()) or not new.all() or self._receiver.acknowledgement[1] != 0
        return only(frames, new)

    @property
    def due(self) -> bool:
        return self._at_once or self._untold >= self._every

    def acknowledgement(self) -> tuple[int, int, bool]:
        """Sequence, selective, and whether congestion was met since the last one; counts as told."""
        told = (*self._receiver.acknowledgement, self._congested)
        self._untold, self._at_once, self._congested = 0, False, False
        return told

    @property
    def next_missing(self) -> int:
        return self._receiver.acknowledgement[0]
