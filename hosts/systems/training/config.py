"""What the agents of a training job are told. The job is a file that all ranks of a machine read once: with all
ranks' addresses in the config of each, 1,024 ranks would be told a million of them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentAddress, AgentConfig, parse_config
from gradbed.hosts.agents.queue_pairs import QueuePairOptions, StreamOptions
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Rule
from gradbed.hosts.systems.training.source import Source


class Delay(AgentConfig):
    """The delay of one rank."""

    slowdown: float = Field(default=1.0, gt=0)
    """Factor by which computations take longer."""
    begins_after_ns: int = Field(default=0, ge=0)
    """Time by which the rank begins later than the others."""


class JobStream(AgentConfig):
    """Switches that carry out an operation of a group."""

    operation: Operation
    group: tuple[int, ...]
    number: int = Field(ge=1)
    """Number of the stream, at each of its ends."""
    ends: dict[int, StreamOptions]
    """Ends by rank."""


class TrainingJob(AgentConfig):
    """A training job, as all of its ranks know it."""

    ranks: tuple[AgentAddress, ...]
    """Address of each rank."""
    racks: tuple[int, ...]
    """By rank, the number of the switch that its host is attached to."""
    source: Source
    iterations: int = Field(default=1, ge=1)
    first_pair: int = Field(default=1, ge=1)
    """Number of the first queue pair."""
    queue_pairs: QueuePairOptions = QueuePairOptions()
    rules: tuple[Rule, ...] = ()
    """How collectives are done, before the rules that come with the system."""
    streams: tuple[JobStream, ...] = ()
    """Collectives that switches carry out, if they have at least streams_from_bytes."""
    streams_from_bytes: int = Field(default=0, ge=0)
    contents: bool = False
    """Whether values are really sent and summed, instead of lengths alone."""
    delays: dict[int, Delay] = Field(default_factory=dict)
    """Delays by rank, of those that have some."""
    timeline: tuple[int, ...] = ()
    """Ranks that report when each node began and ended."""


class ServerConfig(AgentConfig):
    """A host that adds up what switches could not."""

    address: AgentAddress
    """Address of the server."""
    streams: dict[int, StreamOptions]
    """Options of its ends, by their numbers."""


class RankConfig(AgentConfig):
    """The config of one rank."""

    file: Path
    """Path of a TrainingJob as JSON."""
    rank: int = Field(ge=0)


@lru_cache(maxsize=8)
def read_job(file: Path) -> TrainingJob:
    """UserError if it cannot be read."""
    try:
        return parse_config(TrainingJob, file.read_bytes())
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
