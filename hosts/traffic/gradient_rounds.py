"""Gradient rounds beside a traffic: workers that sum by ring all-reduce until the traffic is over."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gradbed.formats.ring import RING_PORT
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.job import CollectiveJob, WorkerOf
from gradbed.hosts.collectives.ring_all_reduce import RingExchange
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.learning.workload import sum_digest, synthetic_gradient


class RoundsConfig(WorkerOf[CollectiveJob]):
    """A worker of a job with synthetic gradients."""

    duration_us: int = Field(ge=0)
    """Time after which no round begins."""


def worker(context: AgentContext, config: RoundsConfig) -> None:
    """Emits `background` after its last round, and at the end the time that each round took and its sum's digest."""
    job = config.job
    with context.open(udp_port=RING_PORT) as interface:
        exchange = RingExchange(job, config.index, interface, context)
        context.emit("ready")
        taken_us: list[int] = []
        digests: list[str] = []
        if context.wait_for_begin():
            end_us = context.now_us() + config.duration_us
            over = False
            while not over:
                gradient = context.compute(partial(_gradient, config, len(digests)))
                # Whoever sees that the time is over says so in the first value, and all hear it in the same round.
                gradient[0] = context.now_us() >= end_us
                begin_us = context.now_us()
                total = exchange.all_reduce(len(digests), gradient)
                if total is None:
                    break
                taken_us.append(context.now_us() - begin_us)
                digests.append(sum_digest(total[1:]))
                over = bool(total[0])
            exchange.flush()
            context.emit("background", rounds=len(digests))
            exchange.linger()
        exchange.drain()
        context.emit("final", statistics={"round_us": taken_us, "digests": digests})


def _gradient(config: RoundsConfig, round_number: int) -> NDArray[np.int32]:
    settings = config.job.workload
    assert isinstance(settings, SyntheticSettings)
    return synthetic_gradient(settings, config.index, round_number)


def expected_digest(settings: SyntheticSettings, workers: int, round_number: int) -> str:
    """Return the digest of the sum that every worker should have found."""
    total = np.zeros(settings.values, np.int64)
    for index in range(workers):
        total += synthetic_gradient(settings, index, round_number)
    return sum_digest(total[1:])
