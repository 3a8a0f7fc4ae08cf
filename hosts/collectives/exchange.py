"""How workers get at the sum of their gradients: the seam behind which parameter server, ring and Gloo fit."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Exchange(Protocol):
    """One worker's side. Rounds are numbered from 0 and come in order."""

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        """The sum of all workers' `values` of a round, flat, in the form of hosts.learning.shifted_sums.as_sent.

        None: stopped before it was complete. UserError if nothing has come for the job's give_up_us.
        """

    def flush(self) -> None:
        """Return when no other worker needs anything more from this one, or when stopped."""

    def linger(self) -> None:
        """Until stop: reply and count what still comes."""

    def settle(self) -> None:
        """After stop: count what still comes, until nothing has for a while."""

    def report(self) -> dict[str, Any]:
        """The statistics so far, as JSON: those of hosts.transport.statistics.EndpointStatistics, and more."""
