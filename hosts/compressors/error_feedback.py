"""What becomes of what a compressor leaves out: it is added to the next gradient (Seide et al., "1-bit stochastic
gradient descent", Interspeech 2014). All sums are of integers: what was sent and what is held back are, at any time,
exactly the sum of all gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class ErrorFeedback:
    """One worker's. Without keeping errors it only hands gradients on."""

    def __init__(self, length: int, *, keeps: bool = True, momentum: float = 0.0) -> None:
        """length: of a gradient. momentum: each worker's own, before errors are kept, and forgotten where something
        was sent (momentum correction and factor masking of Lin et al., "Deep gradient compression", ICLR 2018); the
        sum of all gradients is then that of all velocities."""
        self.held: NDArray[np.int64] = np.zeros(length, np.int64)
        """What is to be sent of the gradient that was taken last and all before it, and has not been yet."""
        self._keeps = keeps
        self._momentum = momentum
        self._velocity: NDArray[np.int64] = np.zeros(length if momentum else 0, np.int64)

    def take(self, gradient: NDArray[np.integer]) -> NDArray[np.int64]:
        """A new gradient; returns what it adds to `held`, shape (length,): itself, or the velocity."""
        added = gradient.astype(np.int64)
        if self._momentum:
            added += np.rint(self._momentum * self._velocity).astype(np.int64)
            self._velocity = added.copy()
        if self._keeps:
            self.held += added
        else:
            self.held = added.copy()
        return added

    def sent(self, places: NDArray[np.intp] | slice, values: NDArray[np.int64]) -> None:
        """These values were sent for these places, each of which is named once."""
        self.held[places] -= values
        if self._momentum:
            self._velocity[places] = 0
