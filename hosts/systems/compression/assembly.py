"""Parts put together: a gradient or a sum, as far as it has come."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.compressors.wire import read
from gradbed.hosts.protocols.datagram_frames import Frames
from gradbed.hosts.systems.compression.packets.frames import is_end


class Assembly:
    """Adds parts to a vector."""

    def __init__(self, length: int, drawn: Callable[[int], NDArray[np.intp] | None] = lambda _: None) -> None:
        """drawn: the places of a round that need not be told (gradbed.hosts.compressors.methods.Compressor)."""
        self._drawn = drawn
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
            drawn = self._drawn(int(frame["round"]))
            found = read(
                int(frame["form"]),
                int(frame["width_bits"]),
                int(frame["unit"]),
                int(frame["first"]),
                int(frame["span"]),
                int(frame["codes"]),
                frame["payload"],
                length if drawn is None else len(drawn),
            )
            if found is None:
                self.rejected += 1
                continue
            positions, values = found
            places = positions if drawn is None else drawn[positions]
            self.values[places] += values
            self.fingerprint = (self.fingerprint + fingerprint(values, length, places)) % MODULUS
