"""Compression's agents, as the launcher starts them: a worker, and the parameter server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gradbed.formats.compression import PART_PORT, TCP_PORT
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.collectives.exchange import Exchange, Worker
from gradbed.hosts.learning.workload import prepare_workload
from gradbed.hosts.systems.compression.config import CompressionJob, CompressionWorker
from gradbed.hosts.systems.compression.exchange import CompressedExchange, FingerprintReporter
from gradbed.hosts.systems.compression.server import CompressionServer
from gradbed.hosts.systems.compression.tcp import TcpExchange, TcpServer


def prepare(config: CompressionWorker | CompressionJob) -> None:
    """Load what all workers need."""
    if isinstance(config, CompressionWorker):
        prepare_workload(config.job.workload)


def worker(context: AgentContext, config: CompressionWorker) -> None:
    """Worker `config.index`, until stop."""
    job, index = config.job, config.index
    with open_exchange(context, job, index) as exchange:
        Worker(job, index, exchange, context).run()


def server(context: AgentContext, config: CompressionJob) -> None:
    """The parameter server, until stop."""
    if config.protocol == "tcp":
        with contextlib.closing(context.listen_tcp(TCP_PORT)) as listener:
            TcpServer(config, listener, context).run()
        return
    with context.open(udp_port=PART_PORT) as interface:
        CompressionServer(config, interface, context).run()


@contextlib.contextmanager
def open_exchange(context: AgentContext, job: CompressionJob, index: int) -> Iterator[Exchange]:
    """Open the exchange of worker `index`."""
    if job.protocol == "tcp":
        with contextlib.closing(context.connect_tcp(job.server.ip, TCP_PORT, job.give_up_us / 1e6)) as stream:
            yield FingerprintReporter(TcpExchange(job, index, stream, context), context)
        return
    with context.open(udp_port=PART_PORT) as interface:
        yield FingerprintReporter(CompressedExchange(job, index, interface, context), context)
