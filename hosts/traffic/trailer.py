"""The trailers of received frames (formats/traffic.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.traffic import TAG, TRAILER, TRAILER_BYTES

TRAILER_TYPE = np.dtype(TRAILER.columns)


def trailers(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """The trailers of those frames of a receive buffer that have one, and which those are (frames,).

    buffer: (frames or more, capacity). lengths: (frames,).
    """
    ends = lengths.astype(np.int64)
    long_enough = (ends >= TRAILER_BYTES) & (ends <= buffer.shape[1])
    rows = np.flatnonzero(long_enough)
    columns = ends[rows, None] + np.arange(-TRAILER_BYTES, 0)
    found: NDArray[np.void] = buffer[rows[:, None], columns].view(TRAILER_TYPE).reshape(len(rows))
    tagged = found["tag"] == TAG
    chosen: NDArray[np.bool_] = np.zeros(len(lengths), np.bool_)
    chosen[rows[tagged]] = True
    return found[tagged], chosen
