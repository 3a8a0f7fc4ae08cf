"""The baselines on the same network: all-reduce among the peers over UDP, which NDN routers forward by IPv4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from gradbed.formats.ring import RING_PORT
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.doubling_all_reduce import DoublingExchange
from gradbed.hosts.collectives.exchange import Exchange, Worker
from gradbed.hosts.collectives.job import CollectiveJob, WorkerOf
from gradbed.hosts.collectives.ring_all_reduce import RingExchange
from gradbed.hosts.learning.workload import prepare_workload

Algorithm = Literal["ring", "recursive-doubling"]
_EXCHANGES: Mapping[Algorithm, Callable[..., Exchange]] = {
    "ring": RingExchange,
    "recursive-doubling": DoublingExchange,
}


class AllReduceConfig(WorkerOf[CollectiveJob]):
    """A peer as a worker of an all-reduce."""

    algorithm: Algorithm


def prepare(config: AllReduceConfig) -> None:
    """Load what all peers need."""
    prepare_workload(config.job.workload)


def peer(context: AgentContext, config: AllReduceConfig) -> None:
    """Sum with the others, until stop."""
    job, index = config.job, config.index
    with context.open(udp_port=RING_PORT) as interface:
        Worker(job, index, _EXCHANGES[config.algorithm](job, index, interface, context), context).run()
