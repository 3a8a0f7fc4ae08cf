"""What a peer of an NDN job is told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from gradbed.formats.addresses import Mac
from gradbed.formats.ndn import job_component
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.learning.fragments import fragment_count
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.workload import gradient_values

CHUNK_FRAMES = 4
"""Frames that leave together, so that a pace costs few wakings."""
FRAME_HEAD_BYTES = 100
"""Of a gradient's frame without its lanes, about: names have different lengths."""

Mode = Literal["synchronous", "asynchronous"]
Exchange = Literal["push", "pull", "unicast"]
"""push: subscriptions, and Data along their trees. pull: Interests for every fragment. unicast: a subscription for
each pair of peers, and a copy of the Data for each subscriber."""


class NdnJob(AgentConfig):
    """A job as all its peers know it. Times in microseconds of the agents' clock."""

    training: str
    """As the controller was asked; the job's own names have its number in them (training_of)."""
    number: int
    publishers: tuple[str, ...]
    """Name components, in the order of the workers' indices."""
    lanes: int
    workload: TrainingSettings | SyntheticSettings = Field(discriminator="kind")
    mode: Mode = "synchronous"
    exchange: Exchange = "push"
    pace_bps: int | None = None
    """At most so fast a publisher's Data leave; None: as fast as the link takes them."""
    first_probe_us: int = 100_000
    """A probe's timer before the first measurement."""
    least_probe_us: int = 5_000
    """A probe's timer is at least so much longer than the usual gap."""
    most_probe_us: int = 1_000_000
    """Repeated probes back off to this."""
    retry_us: int = 20_000
    """Insertions and deletions that are not acknowledged are repeated."""
    refresh_us: int = 400_000
    """Subscriptions are repeated so often: at least twice in an epoch of the routers."""
    window_fragments: int = 32
    """Interests that a peer has out at most, with exchange pull."""
    keep_versions: int = 4
    """A publisher answers probes for so many of its last versions."""
    target_loss: float | None = None
    """Training ends where the mean of all peers' losses is below."""
    give_up_us: int = 30_000_000
    """Who waits for versions, or for acknowledgements at the beginning, waits no longer once nothing has come for so
    long."""

    @model_validator(mode="after")
    def _possible(self) -> NdnJob:
        if self.mode == "asynchronous":
            if not isinstance(self.workload, TrainingSettings):
                raise ValueError("asynchronous peers train: give a training workload")
            if self.exchange == "pull":
                raise ValueError("who does not know of versions cannot ask for them: asynchronous peers push")
        return self

    @property
    def values(self) -> int:
        """Length of a gradient."""
        return gradient_values(self.workload)

    @property
    def silence_us(self) -> int:
        """Return the time without a further fragment after which the rest of a version is lost."""
        if self.pace_bps is None:
            return self.least_probe_us
        between_us = 8_000_000 * CHUNK_FRAMES * (FRAME_HEAD_BYTES + 4 * self.lanes) // self.pace_bps
        return max(self.least_probe_us, 2 * between_us)

    @property
    def fragments(self) -> int:
        """Return the fragments of a version."""
        return fragment_count(self.values, self.lanes)


class PeerConfig(AgentConfig):
    """A peer that trains."""

    job: NdnJob
    index: int
    mac: Mac
    slowness: int = Field(default=1, ge=1)
    """Number of times that it computes every gradient."""


class ObserverConfig(AgentConfig):
    """A host that receives all gradients and publishes none. It subscribes at join_us, and leaves at leave_us (None:
    when training is over), both counted from the beginning."""

    job: NdnJob
    name: str
    mac: Mac
    join_us: int = 0
    leave_us: int | None = None


# ---- Names of a job's streams ----


def training_of(job: NdnJob, receiver: str) -> str:
    """The name component under which a receiver subscribes: its own with exchange unicast, else everybody's."""
    return job_component(asked_training(job.training, job.exchange, receiver), job.number)


def asked_training(training: str, exchange: Exchange, receiver: str) -> str:
    """The same as the controller is asked for it, before the job has a number."""
    return f"{training}>{receiver}" if exchange == "unicast" else training
