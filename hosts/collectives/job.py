"""What the workers of a collective operation are told, whoever sums for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import Field, model_validator

from gradbed.formats.lanes import LANE_MULTIPLE, MAX_LANES
from gradbed.hosts.agents.config import AgentConfig, WorkerAddress
from gradbed.hosts.learning.fragments import fragment_count
from gradbed.hosts.learning.settings import ExternalSettings, Settings, TrainingSettings
from gradbed.hosts.learning.workload import gradient_values
from gradbed.hosts.transport.congestion_window import CongestionControlName
from gradbed.hosts.transport.retransmission_timeout import sender_seed
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS

if TYPE_CHECKING:
    from typing import Self


class CollectiveJob(AgentConfig):
    """Workers that sum their gradients, round by round."""

    job: int = Field(ge=1, le=0xFFFF)
    lanes: int = Field(default=MAX_LANES, ge=LANE_MULTIPLE, le=MAX_LANES, multiple_of=LANE_MULTIPLE)
    workers: tuple[WorkerAddress, ...]
    window_fragments: int = Field(default=32, ge=1)
    """A worker never has more fragments unacknowledged."""
    congestion_control: CongestionControlName = "aimd"
    """aimd: a worker's window follows what it hears of queues (ECN) and losses. ecn: of queues alone, which suits
    links that lose packets for other reasons. none: the window is always window_fragments."""
    min_timeout_us: int = Field(default=10_000, ge=1000)
    """How much longer than its usual round trip a fragment's timer is at least."""
    give_up_us: int = Field(default=30_000_000, ge=1000)
    """A worker ends with an error after so long without news from the network."""
    first_packet_number: int = Field(default=0, ge=0, lt=PACKET_NUMBERS)
    workload: Settings = TrainingSettings()

    @model_validator(mode="after")
    def _workers_consistent(self) -> CollectiveJob:
        if not self.workers:
            raise ValueError("a job needs at least one worker")
        if [worker.index for worker in self.workers] != list(range(len(self.workers))):
            raise ValueError("workers must be listed in the order of their indices 0, 1, 2, ...")
        if len({worker.ip for worker in self.workers}) != len(self.workers):
            raise ValueError("two workers of the job have the same IP address")
        return self

    @property
    def values(self) -> int:
        """Length of a gradient."""
        return gradient_values(self.workload)

    @property
    def fragments_per_round(self) -> int:
        return fragment_count(self.values, self.lanes)

    def first_number(self, round_number: int) -> int:
        """Packet number of a round's first fragment; the others follow."""
        return (self.first_packet_number + round_number * self.fragments_per_round) % PACKET_NUMBERS

    def sender_seed(self, index: int) -> int:
        """Seed of the random delays of an agent's sender; index: of a worker, or their number for the server."""
        seed = 1 if isinstance(self.workload, ExternalSettings) else self.workload.seed
        return sender_seed(seed, index)


Job = TypeVar("Job", bound=CollectiveJob)


class WorkerOf(AgentConfig, Generic[Job]):
    """The config of a worker: its job, and which of the job's workers it is."""

    job: Job
    index: int = Field(ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.index >= len(self.job.workers):
            raise ValueError(f"the job has workers 0 to {len(self.job.workers) - 1}, not {self.index}")
        return self


# ---- How PyTorch's processes on the emulated hosts find each other ----


MASTER_PORT = 29500
"""As torchrun's default."""


def process_group_environment(job: CollectiveJob, index: int, interface: str) -> dict[str, str]:
    """The environment variables of torch.distributed for a worker, which has a host of its own."""
    return {
        "RANK": str(index),
        "WORLD_SIZE": str(len(job.workers)),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": job.workers[0].ip,
        "MASTER_PORT": str(MASTER_PORT),
        "GLOO_SOCKET_IFNAME": interface,
    }
