"""What the agents of a compression job are told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from gradbed.formats.addresses import MulticastAddress
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.collectives.job import CollectiveJob, WorkerOf
from gradbed.hosts.compressors.methods import parsed
from gradbed.hosts.transport.stream_receiver import SELECTIVE_BITS

RatioRule = Literal["none", "source", "corrected"]
Pacing = Literal["none", "even", "active", "aimd"]
"""none: as fast as the window allows. even: the server link's rate over all workers, as the source has it. active:
over those that are still sending. aimd: from that on by congestion marks."""


class CompressionJob(CollectiveJob):
    """Workers that send what they keep of their gradients to a server, which sends the sum to all of them."""

    server: AgentAddress
    multicast: MulticastAddress
    protocol: Literal["packets", "tcp"] = "packets"
    """tcp: the kernel's, without pacing and ratios of ours."""
    server_link_bps: int | None = Field(default=None, ge=1)
    """B1; None: the link has no rate, and nobody can pace by it."""
    compress: str = "none"
    error_feedback: bool = True
    momentum: float = Field(default=0.0, ge=0, lt=1)
    warm_up_rounds: int = Field(default=0, ge=0)
    ratio: RatioRule = "corrected"
    initial_rate: Literal["iteration", "run"] = "iteration"
    """R0: the first rate of the gradient, or the highest of these in the run so far."""
    ratio_floor: float = Field(default=0.01, ge=0, le=1)
    settled_within: float = Field(default=0.05, gt=0)
    interval_us: int = Field(default=5000, ge=1)
    pacing: Pacing = "even"
    left_after_us: int = Field(default=5_000_000, ge=1000)
    """A worker that is silent for so long while others wait for it has left."""
    window_fragments: int = Field(default=64, ge=4, le=SELECTIVE_BITS)

    @field_validator("compress")
    @classmethod
    def _known(cls, compress: str) -> str:
        parsed(compress)
        return compress

    @model_validator(mode="after")
    def _server_is_no_worker(self) -> CompressionJob:
        if self.server.ip in {worker.ip for worker in self.workers}:
            raise ValueError("the server and a worker have the same IP address")
        if self.pacing != "none" and self.server_link_bps is None:
            raise ValueError("the server's link has no rate to pace by")
        return self


class CompressionWorker(WorkerOf[CompressionJob]):
    """A worker of a job."""
