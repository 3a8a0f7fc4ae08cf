"""Where a job's graphs come from: files, a few numbers of a transformer, or one collective again and again."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.execution import Kind, TraceNode
from gradbed.hosts.systems.training.traces.graph import RankGraph, graph_of
from gradbed.hosts.systems.training.traces.opening import open_trace
from gradbed.hosts.systems.training.traces.trace import Trace, TraceSettings
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel


class CollectiveSource(AgentConfig):
    """The same collective of all ranks again and again. size_bytes: as of
    gradbed.hosts.collectives.schedule.Operation.
    root: of those that have one."""

    kind: Literal["collective"] = "collective"
    ranks: int = Field(ge=1)
    operation: Operation = Operation.ALL_REDUCE
    size_bytes: int = Field(ge=0)
    repetitions: int = Field(default=1, ge=1)
    root: int = Field(default=0, ge=0)


class FileSource(AgentConfig):
    """path: as of gradbed.hosts.systems.training.traces.opening.open_trace."""

    kind: Literal["trace"] = "trace"
    path: Path
    settings: TraceSettings = TraceSettings()


class TransformerSource(AgentConfig):
    """A transformer's training, one iteration of it."""

    kind: Literal["transformer"] = "transformer"
    model: TransformerModel


Source = Annotated[CollectiveSource | FileSource | TransformerSource, Field(discriminator="kind")]

_WITH_ROOT = (Operation.BROADCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER)


class CollectiveTrace(Trace):
    """The trace of a CollectiveSource: each collective waits for the one before it."""

    def __init__(self, source: CollectiveSource) -> None:
        super().__init__()
        self._source = source
        self.name = source.operation.value
        self.ranks = source.ranks

    def _read(self, rank: int) -> RankGraph:
        source = self._source
        return graph_of(
            TraceNode(
                number=number,
                name=f"{source.operation.value} {number + 1}",
                kind=Kind.COLLECTIVE,
                after=(number - 1,) if number else (),
                size_bytes=source.size_bytes,
                operation=source.operation,
                root=source.root if source.operation in _WITH_ROOT else None,
            )
            for number in range(source.repetitions)
        )


@lru_cache(maxsize=8)
def trace_of(source: Source) -> Trace:
    """Return all ranks' graphs, read or made when they are asked for. UserError if there is none."""
    if isinstance(source, CollectiveSource):
        if source.root >= source.ranks:
            raise UserError(f"the root, rank {source.root}, is none of {source.ranks} ranks")
        return CollectiveTrace(source)
    if isinstance(source, FileSource):
        return open_trace(source.path, source.settings)
    return open_trace(source.model)
