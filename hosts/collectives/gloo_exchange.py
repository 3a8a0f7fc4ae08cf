"""Sums by PyTorch's Gloo: torch.distributed over TCP sockets of the kernel, as a baseline from the field."""

from __future__ import annotations

import datetime
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from gradbed.common.errors import UserError
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.kernel.namespace import name_hosts
from gradbed.hosts.agents.tcp import retransmitted_segments
from gradbed.hosts.collectives.exchange import KernelExchange
from gradbed.hosts.collectives.job import CollectiveJob, process_group_environment
from gradbed.hosts.learning.fragments import as_sent
from gradbed.hosts.learning.quantise import VALUE_LIMIT
from gradbed.hosts.transport.statistics import EndpointStatistics, Traffic

BOUND_BITS = 8
"""Bounds of values are rounded up to multiples of 2^8, so that the sum of 64 of them fits an int32."""


class GlooExchange(KernelExchange):
    """gradbed.hosts.collectives.exchange.Exchange by a process group.

    Gloo's sums of int32 would wrap silently. So each worker adds one value to its gradient: a bound of its
    magnitudes, in units of 2^8. The sum of the bounds, which all workers see alike, tells whether a sum can have left
    int32; then all of them repeat the round with int64.
    """

    def __init__(self, job: CollectiveJob, index: int, context: AgentContext) -> None:
        """Returns when all workers have met: at the first one, by TCP through the emulated network. UserError."""
        context.require_kernel("all-reduce by Gloo")
        super().__init__(context)
        self._job = job
        self._interface = context.interfaces[0]
        self._repeated_rounds = 0
        self._sent_before, self._received_before = _traffic(self._interface)
        name_hosts({worker.ip: worker.name for worker in job.workers})
        os.environ.update(process_group_environment(job, index, self._interface))
        try:
            distributed.init_process_group("gloo", timeout=datetime.timedelta(microseconds=job.give_up_us))
            distributed.barrier()
        except RuntimeError as error:
            raise UserError(f"the workers do not meet for all-reduce by Gloo: {_first_line(error)}") from None
        self._segments_before = retransmitted_segments()

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        if self._context.stopped:
            return None
        try:
            return as_sent(self._sum(values), self._job.lanes)
        except RuntimeError as error:
            raise UserError(f"all-reduce by Gloo failed in round {round_number}: {_first_line(error)}") from None

    def _sum(self, values: NDArray[np.int32]) -> NDArray[np.int64]:
        largest = int(np.abs(values.astype(np.int64)).max(initial=0))
        bound = np.int32(-(-largest >> BOUND_BITS))  # rounded up
        total = _all_reduced(np.append(values, bound))
        if int(total[-1]) << BOUND_BITS > VALUE_LIMIT:
            self._repeated_rounds += 1
            return _all_reduced(values.astype(np.int64))
        return total[:-1].astype(np.int64)

    def flush(self) -> None:
        """Wait for all, and close the connections: what they still say is then said before anybody counts."""
        try:
            distributed.barrier()
        except RuntimeError as error:
            raise UserError(f"all-reduce by Gloo failed at its end: {_first_line(error)}") from None
        distributed.destroy_process_group()
        gc.collect()  # what is left of the group holds connections, too

    def report(self) -> dict[str, Any]:
        """Frames and bytes are those of the kernel's counters: all of the host's traffic, as gradients."""
        sent, received = _traffic(self._interface)
        statistics = EndpointStatistics(
            gradient_sent=_difference(sent, self._sent_before),
            gradient_received=_difference(received, self._received_before),
        )
        return {
            **statistics.to_json(),
            "timeout_resends": retransmitted_segments() - self._segments_before,
            "early_resends": 0,
            "repeated_rounds": self._repeated_rounds,
        }


def _all_reduced(values: NDArray[Any]) -> NDArray[Any]:
    tensor = torch.from_numpy(values)
    distributed.all_reduce(tensor)
    total: NDArray[Any] = tensor.numpy()
    return total


def _first_line(error: RuntimeError) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _traffic(interface: str) -> tuple[Traffic, Traffic]:
    """Return what an interface has sent and received so far (proc(5)): frames of any protocol, without FCS."""
    table = dict(line.split(":") for line in Path("/proc/self/net/dev").read_text().splitlines() if ":" in line)
    columns = {name.strip(): [int(word) for word in row.split()] for name, row in table.items()}[interface]
    return Traffic(columns[9], columns[8]), Traffic(columns[1], columns[0])


def _difference(now: Traffic, before: Traffic) -> Traffic:
    return Traffic(now.frames - before.frames, now.bytes - before.bytes)
