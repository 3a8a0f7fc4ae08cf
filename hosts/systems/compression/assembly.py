"""Parts put together: a gradient or a sum, as far as it has come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hosts.compressors.fingerprint import MODULUS, fingerprint
from hosts.compressors.wire import read
from hosts.protocols.datagram_frames import Frames
from hosts.systems.compression.frames import is_end


class Assembly:
    """Adds parts to a vector."""

    def __init__(self, length: int) -> None:
        self.values: NDArray[np.int64] = np.zeros(length, np.int64)
        self.fingerprint = 0
        """Of all that was added."""
        self.end_sequence: int | None = None
        """Of the last packet, once that has come."""
        self.rejected = 0
        """Parts that make no sense."""

    def add(self, frames: Frames) -> None:
        """frames: new parts of equal length."""
        length = len(self.values)
        for frame, ends in zip(frames, is_end(frames).tolist(), strict=True):
            if ends:
                self.end_sequence = int(frame["sequence"])
                continue
            found = read(
                int(frame["form"]),
                int(frame["width_bits"]),
                int(frame["unit"]),
                int(frame["first"]),
                int(frame["span"]),
                int(frame["codes"]),
                frame["payload"],
                length,
            )
            if found is None:
                self.rejected += 1
                continue
            places, values = found
            self.values[places] += values
            self.fingerprint = (self.fingerprint + fingerprint(values, length, places)) % MODULUS
