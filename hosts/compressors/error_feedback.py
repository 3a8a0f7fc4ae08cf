"""What becomes of what a compressor leaves out: it is added to the next gradient (Seide et al., "1-bit stochastic
gradient descent", Interspeech 2014). All sums are of integers: what was sent and what is held back are, at any time,
exactly the sum of all gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

INT32_MAX = (1 << 31) - 1


class ErrorFeedback:
    """The error feedback of one worker. Without keeping errors it only hands gradients on."""

    def __init__(self, length: int, *, keeps: bool = True, momentum: float = 0.0) -> None:
        """length: of a gradient. momentum: each worker's own, before errors are kept, and forgotten where something
        was sent (momentum correction and factor masking of Lin et al., "Deep gradient compression", ICLR 2018); the
        sum of all gradients is then that of all velocities."""
        self.held: NDArray[Any] = np.zeros(length, np.int32)
        """What is to be sent of the gradient that was taken last and all before it, and has not been yet: int32 of
        magnitudes below 2^31, and int64 from when something would not fit that."""
        self._most = 0
        """No magnitude in `held` is larger."""
        self._keeps = keeps
        self._momentum = momentum
        self._velocity: NDArray[np.int64] = np.zeros(length if momentum else 0, np.int64)

    def take(self, gradient: NDArray[np.integer]) -> NDArray[np.int64] | None:
        """A new gradient; returns what momentum adds to it, shape (length,). None: nothing."""
        if not self._keeps:
            self.held[:] = self._most = 0
        self._add(gradient)
        if not self._momentum:
            return None
        momentum: NDArray[np.int64] = np.rint(self._momentum * self._velocity).astype(np.int64)
        self._velocity = momentum + gradient
        self._add(momentum)
        return momentum

    def sent(self, places: NDArray[np.intp] | slice, values: NDArray[np.int64]) -> None:
        """Take in that these values were sent for these places, each of which is named once."""
        left = self.held[places] - values
        self._make_room(max(self._most, largest_magnitude(left)))
        self.held[places] = left
        if self._momentum:
            self._velocity[places] = 0

    def _add(self, values: NDArray[np.integer]) -> None:
        more = largest_magnitude(values)
        if self._most + more > INT32_MAX:
            self._most = largest_magnitude(self.held)
        self._make_room(self._most + more)
        self.held += values

    def _make_room(self, most: int) -> None:
        self._most = most
        if most > INT32_MAX and self.held.itemsize == 4:
            self.held = self.held.astype(np.int64)


def largest_magnitude(values: NDArray[np.integer]) -> int:
    """Return the largest magnitude of integers; 0 of none."""
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))
