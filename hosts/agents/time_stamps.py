"""The time at which a frame left, in its last bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STAMP_BYTES = 8


def stamped(
    frames: NDArray[Any], times_ns: NDArray[np.int64], lengths: NDArray[np.uint32] | None = None
) -> NDArray[np.uint8]:
    """The frames, rows of bytes, with times (frames,) in their last eight bytes, big-endian; changes them in place.

    lengths (frames,): bytes of each row that are the frame; None: all. Frames are at least eight bytes long.
    """
    rows: NDArray[np.uint8] = frames.view(np.uint8).reshape(len(frames), -1)
    stamps = times_ns.astype(">i8").view(np.uint8).reshape(-1, STAMP_BYTES)
    if lengths is None:
        rows[:, -STAMP_BYTES:] = stamps
    else:
        columns = lengths.astype(np.int64)[:, None] + np.arange(-STAMP_BYTES, 0)
        rows[np.arange(len(rows))[:, None], columns] = stamps
    return rows
