"""Sums by PyTorch's Gloo: torch.distributed over TCP sockets of the kernel, as a baseline from the field."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from hosts.agents.channel import Channel
from hosts.collectives.process_group import process_group_environment
from hosts.learning.quantise import VALUE_LIMIT
from hosts.learning.shifted_sums import as_sent
from hosts.systems.aggregation.description import JobDescription
from switch.errors import UserError

BOUND_BITS = 8
"""Bounds of values are rounded up to multiples of 2^8, so that the sum of 64 of them fits an int32."""


class GlooExchange:
    """hosts.collectives.exchange.Exchange by a process group.

    Gloo's sums of int32 would wrap silently. So each worker adds one value to its gradient: a bound of its
    magnitudes, in units of 2^8. The sum of the bounds, which all workers see alike, tells whether a sum can have left
    int32; then all of them repeat the round with int64.
    """

    def __init__(self, job: JobDescription, index: int, interface: str, channel: Channel) -> None:
        """Returns when all workers have met: at the first one, by TCP through the emulated network. UserError."""
        self._job = job
        self._channel = channel
        self._repeated_rounds = 0
        os.environ.update(process_group_environment(job, index, interface))
        try:
            distributed.init_process_group("gloo", timeout=datetime.timedelta(microseconds=job.give_up_us))
            distributed.barrier()
        except RuntimeError as error:
            raise UserError(f"the workers do not meet for all-reduce by Gloo: {_first_line(error)}") from None
        self._segments_before = _retransmitted_segments()

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        if self._channel.stopped:
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
        """TCP repeats by itself what gets lost."""

    def linger(self) -> None:
        while not self._channel.stopped:
            self._channel.wait_for_begin()

    def settle(self) -> None:
        """Nothing comes that this process could count."""

    def report(self) -> dict[str, Any]:
        return {
            "timeout_resends": _retransmitted_segments() - self._segments_before,
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


def _retransmitted_segments() -> int:
    """Of all TCP connections in this network namespace; the kernel does not say why."""
    names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line[:4] == "Tcp:")
    return int(values[names.index("RetransSegs")])
