"""The baseline on the same network: ring all-reduce over UDP, which NDN routers forward by IPv4."""

from __future__ import annotations

from formats.ring import RING_PORT
from hosts.agents.context import AgentContext
from hosts.collectives.job import CollectiveJob, WorkerOf
from hosts.collectives.ring_exchange import RingExchange
from hosts.collectives.worker import Worker
from hosts.learning.workload import prepare_workload


class RingDescription(WorkerOf[CollectiveJob]):
    """A peer as a worker of a ring."""


def prepare(description: RingDescription) -> None:
    """Load what all peers need."""
    prepare_workload(description.job.workload)


def peer(context: AgentContext, description: RingDescription) -> None:
    """Sum with the neighbours, until stop."""
    job, index = description.job, description.index
    with context.open(udp_port=RING_PORT) as interface:
        Worker(job, index, RingExchange(job, index, interface, context), context).run()
