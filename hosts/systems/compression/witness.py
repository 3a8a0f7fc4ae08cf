"""What a worker's trainer hands over and what it gets back, told by somebody who has no part in what is between."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.exchange import Exchange
from gradbed.hosts.compressors.fingerprint import fingerprint


class Witness:
    """gradbed.hosts.collectives.exchange.Exchange around another, with an event `trained` after each round."""

    def __init__(self, exchange: Exchange, context: AgentContext) -> None:
        self._exchange = exchange
        self._context = context
        self.flush, self.linger, self.settle = exchange.flush, exchange.linger, exchange.settle

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        given = fingerprint(values, len(values))
        handed_over = values.view()
        handed_over.flags.writeable = False
        total = self._exchange.all_reduce(round_number, handed_over)
        if total is not None:
            self._context.emit(
                "trained",
                round=round_number,
                gradient_fingerprint=given,
                sum_fingerprint=fingerprint(total, len(total)),
            )
        return total

    def report(self) -> dict[str, Any]:
        return self._exchange.report()
