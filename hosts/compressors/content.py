"""What a compressor makes of a gradient: codes for some of its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Content:
    """The value at indices[i] stands for codes[i] * unit; all others for 0.

    indices: ascending, shape (codes,), of a gradient of `length` values; None: those from `start` on without a gap.
    codes: int64, each fits `width_bits` as two's complement; of a single bit, -1 and 1.
    """

    length: int
    codes: NDArray[np.int64]
    width_bits: int = 32
    unit: int = 1
    indices: NDArray[np.intp] | None = None
    start: int = 0

    @property
    def places(self) -> NDArray[np.intp]:
        """Of all codes."""
        if self.indices is None:
            return np.arange(self.start, self.start + len(self.codes))
        return self.indices

    @property
    def values(self) -> NDArray[np.int64]:
        """What the codes stand for."""
        return self.codes * np.int64(self.unit)

    def before(self, end: int) -> Content:
        """The first codes alone."""
        indices = None if self.indices is None else self.indices[:end]
        return Content(self.length, self.codes[:end], self.width_bits, self.unit, indices, self.start)

    def after(self, first: int) -> Content:
        """Without the first codes."""
        indices = None if self.indices is None else self.indices[first:]
        start = self.start + first
        return Content(self.length, self.codes[first:], self.width_bits, self.unit, indices, start)

    def chosen(self, which: NDArray[np.intp]) -> Content:
        """These codes alone, by their place among the codes, ascending."""
        return Content(self.length, self.codes[which], self.width_bits, self.unit, self.places[which])

    def with_more(self, later: Content) -> Content:
        """With the codes of another content of the same gradient, whose places are all behind these."""
        codes, places = (np.concatenate(pair) for pair in ((self.codes, later.codes), (self.places, later.places)))
        return Content(self.length, codes, self.width_bits, self.unit, places)

    def decoded(self) -> NDArray[np.int64]:
        """The whole gradient that it stands for, shape (length,)."""
        gradient = np.zeros(self.length, np.int64)
        gradient[self.places] = self.values
        return gradient
