"""A worker: makes gradients, and takes in the global sums that come back."""

from __future__ import annotations

from hosts.agents.channel import Channel
from hosts.agents.clock import now_us
from hosts.collectives.exchange import Exchange
from hosts.learning.workload import workload
from hosts.systems.aggregation.description import JobDescription


class Worker:
    """One worker of a job; the exchange does the network's part."""

    def __init__(self, job: JobDescription, index: int, exchange: Exchange, channel: Channel) -> None:
        self._rounds = job.workload.rounds
        self._channel = channel
        self._exchange = exchange
        self._workload = workload(job.workload, index, len(job.workers))

    def run(self) -> None:
        """All rounds, then silence: after its last round a worker only answers and counts, until stop."""
        self._channel.emit("ready")
        if self._channel.wait_for_begin() and self._work():
            self._channel.emit("done", statistics=self._exchange.report())
            self._exchange.linger()
        self._exchange.settle()
        self._channel.emit("final", statistics=self._exchange.report())

    def _work(self) -> bool:
        """False: stopped before the last round's end."""
        for round_number in range(self._rounds):
            start_us = now_us()
            gradient = self._workload.gradient(round_number)
            handed_over_us = now_us()
            total = self._exchange.all_reduce(round_number, gradient)
            if total is None:
                return False
            complete_us = now_us()
            self._workload.apply(total)
            end_us = now_us()
            if round_number == self._rounds - 1:
                # Whoever hears that all workers are done may stop them: nothing is to be repeated any more.
                self._exchange.flush()
            self._channel.emit(
                "round",
                round=round_number,
                seconds=(complete_us - handed_over_us) / 1e6,
                total_seconds=(end_us - start_us) / 1e6,
                **self._workload.report(),
            )
        return True
