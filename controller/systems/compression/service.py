"""Compression's part of the controller: the tree by which sums reach all workers, the marks of queues, and what a
worker must know of the server's link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.entries import congestion_plan
from gradbed.controller.planning.multicast import GROUPS_PER_JOB, multicast_address, multicast_plan, multicast_tree
from gradbed.controller.planning.plan import Plan, TableEntry
from gradbed.formats.addresses import MulticastAddress
from gradbed.topo.graph import Topology

PROGRAM = "compression"

# On star:2.
_REQUEST_EXAMPLE: dict[str, Any] = {"workers": ["h2"], "server": "h1"}


class CompressionSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of the service."""

    congestion_packets: int | None = Field(default=None, ge=1)
    """Packets in a queue from which on switches mark congestion; null: they never do."""


class CompressionJobRequest(BaseModel):
    """Workers that send their gradients to a server."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _REQUEST_EXAMPLE})

    workers: Annotated[tuple[str, ...], Field(min_length=1)]
    server: str


class AdmittedCompressionJob(BaseModel, frozen=True):
    """The answer to a new job."""

    job: int
    multicast: MulticastAddress
    server_link_bps: int | None
    """B1: rate of the link between the server and its switch; null: unlimited."""


class CompressionService(
    Service[CompressionSettings, CompressionJobRequest, CompressionJobRequest, AdmittedCompressionJob]
):
    """Implements gradbed.controller.core.service.Service."""

    Settings, Request, State, Answer = (
        CompressionSettings,
        CompressionJobRequest,
        CompressionJobRequest,
        AdmittedCompressionJob,
    )
    programs = (PROGRAM,)

    def base(self) -> Plan:
        if self.settings.congestion_packets is None:
            return Plan(switches={})
        names = [switch.name for switch in self.topology.switches]
        return congestion_plan(self.topology, names, self.settings.congestion_packets, PROGRAM)

    def admit(
        self, number: int, request: CompressionJobRequest, others: Mapping[int, CompressionJobRequest]
    ) -> CompressionJobRequest:
        check_hosts(self.topology, request.workers, request.server)
        return request

    def plan(self, number: int, state: CompressionJobRequest) -> Plan:
        group = number * GROUPS_PER_JOB
        tree = multicast_tree(self.topology, state.server, state.workers, ())
        return Plan(switches=multicast_plan(self.topology, tree, group, multicast_address(group).ip, PROGRAM))

    def answer(self, number: int, state: CompressionJobRequest) -> AdmittedCompressionJob:
        address = multicast_address(number * GROUPS_PER_JOB)
        link = self.topology.link(state.server, self.topology.attachment(state.server).name)
        return AdmittedCompressionJob(job=number, multicast=address, server_link_bps=link.model.rate_bps)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        # Switches that only forward do not mark, whatever their queues hold.
        return None if entry.table == "congestion_thresholds" else entry


def check_hosts(topology: Topology, workers: Sequence[str], server: str) -> None:
    """Raise UserError unless workers and server are distinct hosts."""
    for name in (*workers, server):
        topology.host(name)
    repeated = sorted({name for name in workers if workers.count(name) > 1})
    if repeated:
        raise UserError(f"worker named twice: {', '.join(repeated)}")
    if server in workers:
        raise UserError(f"{server} cannot be both server and worker")
