"""What a compressor makes of a gradient: codes for some of its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Content:
    """The value at places[i] stands for codes[i] * unit; all others for 0.

    length: of the gradient.
    codes: integers, each fits `width_bits` as two's complement; of a single bit, -1 and 1.
    drawn: places, ascending, that whoever reads this knows; of these, or of all, the positions of the codes are told.
    indices: these positions, ascending, shape (codes,); None: those from `start` on without a gap.
    """

    length: int
    codes: NDArray[Any]
    width_bits: int = 32
    unit: int = 1
    indices: NDArray[np.intp] | None = None
    start: int = 0
    drawn: NDArray[np.intp] | None = None

    @property
    def positions(self) -> NDArray[np.intp]:
        """Return the positions of all codes, in `drawn` or in the gradient."""
        if self.indices is None:
            return np.arange(self.start, self.start + len(self.codes))
        return self.indices

    @property
    def places(self) -> NDArray[np.intp]:
        """Return the places of all codes in the gradient."""
        return self.positions if self.drawn is None else self.drawn[self.positions]

    @property
    def values(self) -> NDArray[np.int64]:
        """Return what the codes stand for."""
        return self.codes * np.int64(self.unit)

    def before(self, end: int) -> Content:
        """The first codes alone."""
        return replace(self, codes=self.codes[:end], indices=None if self.indices is None else self.indices[:end])

    def after(self, first: int) -> Content:
        """Return the content without the first codes."""
        indices = None if self.indices is None else self.indices[first:]
        return replace(self, codes=self.codes[first:], indices=indices, start=self.start + first)

    def chosen(self, which: NDArray[np.intp]) -> Content:
        """Return these codes alone, by their place among the codes, ascending."""
        return replace(self, codes=self.codes[which], indices=self.positions[which])

    def with_more(self, later: Content) -> Content:
        """Append the codes of another content of the same gradient, whose positions are all behind these."""
        codes = np.concatenate([self.codes, later.codes])
        return replace(self, codes=codes, indices=np.concatenate([self.positions, later.positions]))

    def decoded(self) -> NDArray[np.int64]:
        """The whole gradient that it stands for, shape (length,)."""
        gradient = np.zeros(self.length, np.int64)
        gradient[self.places] = self.values
        return gradient
