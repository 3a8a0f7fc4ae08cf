"""The baselines on the same network: all-reduce among the peers over UDP, which NDN routers forward by IPv4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from gradbed.formats.ring import RING_PORT
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.doubling_all_reduce import DoublingExchange
from gradbed.hosts.collectives.exchange import Exchange
from gradbed.hosts.collectives.job import CollectiveJob, WorkerOf
from gradbed.hosts.collectives.ring_all_reduce import RingExchange
from gradbed.hosts.collectives.worker import Worker
from gradbed.hosts.learning.workload import prepare_workload

Algorithm = Literal["ring", "recursive-doubling"]
_EXCHANGES: Mapping[Algorithm, Callable[..., Exchange]] = {
    "ring": RingExchange,
    "recursive-doubling": DoublingExchange,
}


class AllReduceDescription(WorkerOf[CollectiveJob]):
    """A peer as a worker of an all-reduce."""

    algorithm: Algorithm


def prepare(description: AllReduceDescription) -> None:
    """Load what all peers need."""
    prepare_workload(description.job.workload)


def peer(context: AgentContext, description: AllReduceDescription) -> None:
    """Sum with the others, until stop."""
    job, index = description.job, description.index
    with context.open(udp_port=RING_PORT) as interface:
        Worker(job, index, _EXCHANGES[description.algorithm](job, index, interface, context), context).run()
