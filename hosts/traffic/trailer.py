"""The end of every frame of the traffic: from whom to whom it is, which one, and when it left.

At the end, since headers may come, go and change on the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TAG = 0x7A6B
WARM_UP = 1 << 15
"""In `source`: the packet is not measured."""

TRAILER = np.dtype(
    [("tag", ">u2"), ("source", ">u2"), ("receiver", ">u2"), ("flow", ">u4"), ("sequence", ">u4"), ("sent_ns", ">u8")]
)
"""source, receiver: numbers of hosts. flow: of its source. sequence: in its flow, from 0. sent_ns: of the sender's
clock; the context writes it."""

TRAILER_BYTES = TRAILER.itemsize


def trailers(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """The trailers of those frames of a receive buffer that have one, and which those are (frames,).

    buffer: (frames or more, capacity). lengths: (frames,).
    """
    ends = lengths.astype(np.int64)
    long_enough = (ends >= TRAILER_BYTES) & (ends <= buffer.shape[1])
    rows = np.flatnonzero(long_enough)
    columns = ends[rows, None] + np.arange(-TRAILER_BYTES, 0)
    found: NDArray[np.void] = buffer[rows[:, None], columns].view(TRAILER).reshape(len(rows))
    tagged = found["tag"] == TAG
    chosen: NDArray[np.bool_] = np.zeros(len(lengths), np.bool_)
    chosen[rows[tagged]] = True
    return found[tagged], chosen
