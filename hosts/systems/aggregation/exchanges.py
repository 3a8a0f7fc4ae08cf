"""The exchange that a job description names, inside the worker's host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hosts.agents.channel import Channel
from hosts.collectives.exchange import Exchange
from hosts.collectives.ring_exchange import RingExchange
from hosts.collectives.ring_format import RING_PORT
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.server_exchange import ServerExchange
from hosts.transport.raw_socket import RawSocket


@contextlib.contextmanager
def open_exchange(job: JobDescription, index: int, interface: str, channel: Channel) -> Iterator[Exchange]:
    """Worker `index`'s exchange, on an interface of the present network namespace."""
    if job.exchange == "gloo":
        # Loads PyTorch.
        from hosts.collectives.gloo_exchange import GlooExchange

        yield GlooExchange(job, index, interface, channel)
    elif job.exchange == "ring":
        with RawSocket(interface, RING_PORT) as raw_socket:
            yield RingExchange(job, index, raw_socket, channel)
    else:
        with RawSocket(interface) as raw_socket:
            yield ServerExchange(job, index, raw_socket, channel)
