"""What comes from one other agent: which parts are new, and when to acknowledge them."""

from __future__ import annotations

import random

import numpy as np

from gradbed.formats.compression import Flags
from gradbed.hosts.protocols.datagram_frames import Frames, met_congestion, only
from gradbed.hosts.systems.compression.packets.frames import is_end
from gradbed.hosts.transport.stream_receiver import StreamReceiver

MOST_DOUBLINGS = 3
"""A random delay is at most eight times as long as the first."""


class Incoming:
    """The receiver's side of a stream. An acknowledgement is due after every `every` packets, at a gap, at a copy,
    and at the end of a gradient.

    A receiver of a copy of a multicast packet has answered the first one, as all others have: in the same nanosecond
    where no link has jitter. A queue shorter than their answers then loses those of the same receivers each time, so
    copies are answered after a random delay, which doubles while nothing new comes (RFC 5740, 5.3).
    """

    def __init__(self, first_sequence: int, every: int, *, spread_us: int = 0, seed: int = 0) -> None:
        """spread_us: the delay's bound at the first copy; 0: copies are answered at once."""
        self._receiver = StreamReceiver(first_sequence)
        self._every = every
        self._spread_us = spread_us
        self._random = random.Random(seed)
        self._copies = 0
        """Answers to copies since the last new packet."""
        self._untold = 0
        self._due_us: int | None = None
        self._congested = False

    def accept(self, frames: Frames, now_us: int) -> Frames:
        """Those that are new."""
        if not len(frames):
            return frames
        new = np.array(self._receiver.accept(frames["sequence"].tolist()), np.bool_)
        self._congested |= bool(met_congestion(frames, Flags.CONGESTION).any())
        self._untold += len(frames)
        if new.any():
            self._copies = 0
            told = is_end(frames).any() or not new.all() or self._receiver.acknowledgement[1] != 0
            if told or self._untold >= self._every:
                self._due_us = now_us
        elif self._due_us is None:
            bound_us = self._spread_us << min(self._copies, MOST_DOUBLINGS)
            self._due_us = now_us + self._random.randrange(bound_us + 1)
            self._copies += 1
        return only(frames, new)

    @property
    def due_us(self) -> int | None:
        """When an acknowledgement is due; None: nothing has to be told."""
        return self._due_us

    def acknowledgement(self) -> tuple[int, int, bool]:
        """Sequence, selective, and whether congestion was met since the last one; counts as told."""
        told = (*self._receiver.acknowledgement, self._congested)
        self._untold, self._due_us, self._congested = 0, None, False
        return told

    @property
    def next_missing(self) -> int:
        return self._receiver.acknowledgement[0]
