"""What aggregation's agents are told: the job, with designations and the server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from common.errors import UserError
from hosts.agents.description import Description
from hosts.collectives.job import CollectiveJob
from hosts.protocols.addresses import AgentAddress, Ip, Mac
from hosts.systems.aggregation.gradient_format import BITMAP_BITS, UDP_PORT

SwitchNumber = Annotated[int, Field(ge=0, le=0xFFFF)]
Exchange = Literal["server", "ring", "gloo"]
FanIn = Annotated[int, Field(ge=0, le=BITMAP_BITS)]


class Designation(Description):
    """Where a gradient is summed on its way: the label that its packet carries.

    switch_number: the designated switch (0: none, straight to the server). fan_in: workers whose gradients it waits
    for. next_switch, next_fan_in: the same of the second level, where the sum goes on to, and so does a packet that
    the first switch cannot take (0: none).
    """

    switch_number: SwitchNumber = 0
    fan_in: FanIn = 0
    next_switch: SwitchNumber = 0
    next_fan_in: FanIn = 0

    @model_validator(mode="after")
    def _consistent(self) -> Designation:
        if self.next_switch and not self.switch_number:
            raise ValueError("a gradient without a designated switch has no second one")
        for switch, fan_in in ((self.switch_number, self.fan_in), (self.next_switch, self.next_fan_in)):
            if (switch == 0) != (fan_in == 0):
                raise ValueError(f"switch {switch} cannot wait for {fan_in} workers")
            if switch == UDP_PORT:
                # Its packets would look like those without a designated switch.
                raise ValueError(f"no switch may have the number {UDP_PORT}, the UDP port of gradients")
        return self


DIRECT = Designation()
"""Straight to the server."""


class MulticastAddress(Description):
    """A group that all workers belong to."""

    ip: Ip
    mac: Mac


class JobDescription(CollectiveJob):
    """One job: who takes part, where gradients are summed, what is computed."""

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
    slot_policy: Literal["dynamic", "static"] = "dynamic"
    """How switches choose slots. static: by packet number modulo slots, so that unacknowledged packet numbers of a
    worker may not lie window_fragments or more apart."""

    @model_validator(mode="after")
    def _consistent(self) -> JobDescription:
        if len(self.workers) > BITMAP_BITS:
            raise UserError(
                f"a job has at most {BITMAP_BITS} workers (bits of the worker bitmap), got {len(self.workers)}"
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

    def designations_of(self, worker: int) -> tuple[Designation, ...]:
        """The labels that a worker deals to its packets in turn; at least one."""
        return (self.designations[worker] if self.designations else ()) or (DIRECT,)


class WorkerDescription(Description):
    """What a worker is told: its job, and which of the job's workers it is."""

    job: JobDescription
    index: int = Field(ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> WorkerDescription:
        if self.index >= len(self.job.workers):
            raise ValueError(f"the job has workers 0 to {len(self.job.workers) - 1}, not {self.index}")
        return self
