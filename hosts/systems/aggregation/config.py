"""What aggregation's agents are told: the job, with designations and the server."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from gradbed.common.errors import UserError
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import DIRECT, MAX_WORKERS, Designation
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.collectives.job import CollectiveJob, WorkerOf


def aggregation_paths(designations: Sequence[Sequence[Hashable]]) -> tuple[int, ...]:
    """Numbers of the paths that a job's fragments take, turn by turn; at least one turn.

    designations: for each worker those of its turns; workers with any have equally many. A fragment's ACK waits for
    all workers, so fragments share a path if their gradients, of whatever workers, are summed at the same switches.
    """
    numbers: dict[frozenset[Hashable], int] = {}
    turns = zip(*(own for own in designations if own), strict=True)
    return tuple(numbers.setdefault(frozenset(turn), len(numbers)) for turn in turns) or (0,)


Exchange = Literal["server", "ring", "gloo"]


class AggregationJob(CollectiveJob):
    """A job: who takes part, where gradients are summed, what is computed."""

    exchange: Exchange = "server"
    """Who sums. server: the parameter server, and switches on the way to it. ring: the workers, by ring all-reduce.
    gloo: the workers, by PyTorch's Gloo over TCP. Only the first has a server agent, and designations."""
    designations: tuple[tuple[Designation, ...], ...] = ()
    """For each worker, by index: packet number n is labelled with the n-th of them (modulo their number), or goes
    straight to the server if there are none. No tuples at all: that holds for every worker."""
    multicast: tuple[MulticastAddress, ...] = ()
    """Where the server sends the sum of packet number n: the n-th of these groups (modulo their number). None of
    them: to each worker by unicast."""
    server: AgentAddress
    span_fragments: int | None = Field(default=None, ge=1)
    """Unacknowledged packet numbers of a worker lie less than this apart: numbers take turns in as many slots of the
    job's own, and further apart they would meet. None: no bound."""

    @model_validator(mode="after")
    def _consistent(self) -> AggregationJob:
        if len(self.workers) > MAX_WORKERS:
            raise UserError(
                f"a job has at most {MAX_WORKERS} workers (bits of the worker bitmap), got {len(self.workers)}"
            )
        if self.designations and len(self.designations) != len(self.workers):
            raise ValueError(f"designations are for {len(self.designations)} of {len(self.workers)} workers")
        if len({len(own) for own in self.designations if own}) > 1:
            raise ValueError("workers with designations must have equally many")
        most = max((max(d.fan_in, d.next_fan_in) for own in self.designations for d in own), default=0)
        if most > len(self.workers):
            raise ValueError(f"a switch waits for {most} workers, but there are {len(self.workers)}")
        if self.server.ip in {worker.ip for worker in self.workers}:
            raise ValueError("the server and a worker have the same IP address")
        return self

    @property
    def full_bitmap(self) -> int:
        """Bitmap of all workers."""
        return (1 << len(self.workers)) - 1

    @cached_property
    def paths(self) -> tuple[int, ...]:
        """Numbers of the paths that fragments take (gradbed.hosts.systems.aggregation.config)."""
        return aggregation_paths(self.designations)

    def designations_of(self, worker: int) -> tuple[Designation, ...]:
        """The labels that a worker deals to its packets in turn; at least one."""
        return (self.designations[worker] if self.designations else ()) or (DIRECT,)


class AggregationWorker(WorkerOf[AggregationJob]):
    """A worker of a job."""
