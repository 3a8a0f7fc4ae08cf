"""Aggregation's agents, as the launcher starts them: a worker, and the parameter server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gradbed.common.errors import UserError
from gradbed.formats.aggregation import GRADIENT_PORT
from gradbed.formats.ring import RING_PORT
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.exchange import Exchange, Worker
from gradbed.hosts.collectives.ring_all_reduce import RingExchange
from gradbed.hosts.learning.workload import prepare_workload
from gradbed.hosts.systems.aggregation.config import AggregationJob, AggregationWorker
from gradbed.hosts.systems.aggregation.server import AggregationServer
from gradbed.hosts.systems.aggregation.worker.library import sender_library
from gradbed.hosts.systems.aggregation.worker.server_exchange import ServerExchange
from gradbed.hosts.torch_hook.torch_extra import load_torch


def prepare(config: AggregationWorker | AggregationJob) -> None:
    """Load what all workers need."""
    if isinstance(config, AggregationWorker):
        prepare_workload(config.job.workload)
        if config.job.exchange == "server":
            sender_library()
        if config.job.exchange == "gloo":
            load_torch("all-reduce by Gloo")


def worker(context: AgentContext, config: AggregationWorker) -> None:
    """Worker `config.index`, until stop."""
    job, index = config.job, config.index
    with open_exchange(context, job, index) as exchange:
        Worker(job, index, exchange, context).run()


def server(context: AgentContext, config: AggregationJob) -> None:
    """The parameter server, until stop."""
    if config.exchange != "server":
        raise UserError(f"job {config.job} has no server: its workers sum ({config.exchange})")
    with context.open(udp_port=GRADIENT_PORT) as interface:
        AggregationServer(config, interface, context).run()


@contextlib.contextmanager
def open_exchange(context: AgentContext, job: AggregationJob, index: int) -> Iterator[Exchange]:
    """The exchange that the job names, for worker `index`."""
    if job.exchange == "gloo":
        # Loads PyTorch.
        from gradbed.hosts.collectives.gloo_exchange import GlooExchange

        yield GlooExchange(job, index, context)
    elif job.exchange == "ring":
        with context.open(udp_port=RING_PORT) as interface:
            yield RingExchange(job, index, interface, context)
    else:
        with context.open(udp_port=GRADIENT_PORT) as interface:
            yield ServerExchange(job, index, interface, context)
