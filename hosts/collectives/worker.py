"""A worker: makes gradients, and takes in the global sums that come back."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.exchange import Exchange, close, finish
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.workload import workload


class Worker:
    """A worker of a job; the exchange does the network's part."""

    def __init__(self, job: CollectiveJob, index: int, exchange: Exchange, context: AgentContext) -> None:
        self._rounds = job.workload.rounds
        self._context = context
        self._exchange = exchange
        self._workload = workload(job.workload, index, len(job.workers))
        self._computed: list[NDArray[np.int32]] = []
        """Before its round begins."""

    def run(self) -> None:
        """Work through all rounds, then only reply and count until stop."""
        context, exchange = self._context, self._exchange
        # Before: where processors are few, workers that compute first would hand over milliseconds apart.
        self._computed.append(self._workload.gradient(0))
        context.emit("ready")
        if context.wait_for_begin() and self._work():
            finish(exchange, context)
        else:
            close(exchange, context)

    def _work(self) -> bool:
        """Work through all rounds; False when stopped before the last one's end."""
        context = self._context
        for round_number in range(self._rounds):
            start_us = context.now_us()
            # In a list: what is popped is not kept here as well while the exchange keeps its fragments.
            gradient = [context.compute(partial(self._gradient, round_number))]
            handed_over_us = context.now_us()
            total = self._exchange.all_reduce(round_number, gradient.pop())
            if total is None:
                return False
            complete_us = context.now_us()
            self._workload.apply(total)
            del total
            end_us = context.now_us()
            if round_number == self._rounds - 1:
                # Whoever hears that all workers are done may stop them: nothing is to be repeated any more.
                self._exchange.flush()
            context.emit(
                "round",
                round=round_number,
                seconds=(complete_us - handed_over_us) / 1e6,
                complete_us=complete_us,
                total_seconds=(end_us - start_us) / 1e6,
                **self._workload.report(),
            )
        return True

    def _gradient(self, round_number: int) -> NDArray[np.int32]:
        return self._computed.pop() if self._computed else self._workload.gradient(round_number)
