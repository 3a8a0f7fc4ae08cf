"""How workers get the sum of their gradients, the interface of parameter server, ring and Gloo; and their loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.agents.context import AgentContext, FastPath, drain
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.workload import workload


class Exchange(Protocol):
    """The way in which one worker gets the sums of all gradients. Rounds are numbered from 0 and come in order."""

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        """The sum of all workers' `values` of a round, flat, in the form of
        gradbed.hosts.learning.fragments.as_sent.

        None: stopped before it was complete. UserError if nothing has come for the job's give_up_us.
        """

    def flush(self) -> None:
        """Return when no other worker needs anything more from this one, or when stopped."""

    def linger(self) -> None:
        """Reply and count what still comes, until stop."""

    def drain(self) -> None:
        """Count what still comes after stop, until nothing has come for a while."""

    def report(self) -> dict[str, Any]:
        """The statistics so far, as JSON: those of gradbed.hosts.transport.statistics.EndpointStatistics, and
        more."""


def finish(exchange: Exchange, context: AgentContext) -> None:
    """Serve after the last round until stop, and report what was counted before and after."""
    context.emit("done", statistics=exchange.report())
    exchange.linger()
    close(exchange, context)


def close(exchange: Exchange, context: AgentContext) -> None:
    """Count what still comes after stop, and report it."""
    exchange.drain()
    context.emit("final", statistics=exchange.report())


class KernelExchange:
    """An exchange whose packets are the kernel's: this process has nothing to count."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context

    def flush(self) -> None:
        """The others have all that they need."""

    def linger(self) -> None:
        while not self._context.stopped:
            self._context.wait()

    def drain(self) -> None:
        """Do nothing: nothing comes that this process could count."""


class PacketExchange(ABC):
    """An exchange with packets of its own: one loop takes in, sends and waits."""

    def __init__(self, context: AgentContext, give_up_us: int) -> None:
        self._context = context
        self._give_up_us = give_up_us
        self._timeout_text = f"for {give_up_us / 1e6:g} s"
        self._progress_us = 0
        """When anything was news."""
        self._fast_path: FastPath | None = None
        """For AgentContext.wait."""

    @abstractmethod
    def _take_in(self) -> bool:
        """Take in all that waits. True if anything was new."""

    @abstractmethod
    def _send_due(self) -> None:
        """Send what is due now."""

    @abstractmethod
    def _due_us(self) -> int | None:
        """Return when something is due next; None: not before something comes."""

    @abstractmethod
    def _timeout_message(self) -> str:
        """Say what is wrong when nothing new has come for give_up_us."""

    @abstractmethod
    def _count(self) -> object | None:
        """Count one batch of what comes when all is done; None: there is none."""

    def _serve_until(self, finished: Callable[[], bool]) -> bool:
        """Serve until finished; False when stopped before. UserError if nothing new has come for give_up_us."""
        context = self._context
        self._progress_us = context.now_us()
        while True:
            # All that has arrived comes first: an agent that the scheduler kept waiting must not take the
            # acknowledgements in its queue for lost.
            if self._take_in():
                self._progress_us = context.now_us()
            if finished():
                return True
            self._send_due()
            give_up_us = self._progress_us + self._give_up_us
            if context.now_us() >= give_up_us:
                raise UserError(self._timeout_message())
            due_us = self._due_us()
            context.wait(give_up_us if due_us is None else min(due_us, give_up_us), fast_path=self._fast_path)
            if context.stopped:
                return False

    def flush(self) -> None:  # noqa: B027 - as a rule nobody waits
        """The others have all that they need."""

    def linger(self) -> None:
        while not self._context.stopped:
            self._context.wait()
            while self._count() is not None:
                pass

    def drain(self) -> None:
        drain(self._context, self._count)


# ---- A worker makes gradients, and takes in the global sums that come back ----


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
                # A worker that learns that all are done may stop: no result has to be repeated any more.
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
