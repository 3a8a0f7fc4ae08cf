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
    """The delay of one rank.

    slowdown: so many times as long it computes. begins_after_ns: so much later than the others.
    """

    slowdown: float = Field(default=1.0, gt=0)
    begins_after_ns: int = Field(default=0, ge=0)


class JobStream(AgentConfig):
    """Switches that carry out an operation of a group. number: of the stream, at each of its ends. ends: by rank."""

    operation: Operation
    group: tuple[int, ...]
    number: int = Field(ge=1)
    ends: dict[int, StreamOptions]


class TrainingJob(AgentConfig):
    """ranks: where each lives. racks: by rank, the number of the switch that its host hangs on. first_pair: number of
    the first queue pair. rules: how collectives are done, before those that come with the system. streams: what
    switches do of them, if a collective is of so many bytes (streams_from_bytes). contents: whether values are really
    sent and summed, instead of lengths alone. delays: by rank, of those that have some. timeline: ranks that tell
    when each node began and ended."""

    ranks: tuple[AgentAddress, ...]
    racks: tuple[int, ...]
    source: Source
    iterations: int = Field(default=1, ge=1)
    first_pair: int = Field(default=1, ge=1)
    queue_pairs: QueuePairOptions = QueuePairOptions()
    rules: tuple[Rule, ...] = ()
    streams: tuple[JobStream, ...] = ()
    streams_from_bytes: int = Field(default=0, ge=0)
    contents: bool = False
    delays: dict[int, Delay] = Field(default_factory=dict)
    timeline: tuple[int, ...] = ()


class ServerConfig(AgentConfig):
    """A host that adds up what switches could not. address: its own. streams: its ends, by their numbers."""

    address: AgentAddress
    streams: dict[int, StreamOptions]


class RankConfig(AgentConfig):
    """file: a TrainingJob as JSON."""

    file: Path
    rank: int = Field(ge=0)


@lru_cache(maxsize=8)
def read_job(file: Path) -> TrainingJob:
    """UserError if it cannot be read."""
    try:
        return parse_config(TrainingJob, file.read_bytes())
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
