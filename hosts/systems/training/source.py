"""Where a job's graphs come from: files, a few numbers of a transformer, or one collective again and again."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.chakra import NAME, ChakraTrace
from gradbed.hosts.systems.training.traces.chakra_files import read_json_records, read_records
from gradbed.hosts.systems.training.traces.graph import Kind, RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.text import TextTrace
from gradbed.hosts.systems.training.traces.trace import Trace, TraceSettings
from gradbed.hosts.systems.training.traces.transformer import TransformerTrace
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel

# ---- Traces by what people name: a folder, a file, a prefix of files, or the numbers of a transformer ----


TEXT_SUFFIX = ".txt"
PARSERS = {"et": read_records, "json": read_json_records}


def open_trace(what: Path | str | TransformerModel, settings: TraceSettings | None = None) -> Trace:
    """what: the numbers of a transformer; or of files the folder that has one trace, their common beginning
    (FOLDER/PREFIX), one of them, or a text workload (FILE.txt). Ranks' files are read when they are asked for.
    UserError if there is no trace, or a rank's file is missing."""
    if isinstance(what, TransformerModel):
        return TransformerTrace(what)
    path, settings = Path(what), settings or TraceSettings()
    if path.suffix == TEXT_SUFFIX:
        return TextTrace(path, settings)
    prefix, suffix, files = _files(path)
    for rank in range(len(files)):
        if rank not in files:
            folder = files[max(files)].parent
            raise UserError(f"{folder}: there is no file of rank {rank} ({prefix}.{rank}.{suffix})")
    return ChakraTrace(str(path), files, PARSERS[suffix], settings)


def _files(path: Path) -> tuple[str, str, dict[int, Path]]:
    """Prefix, suffix, and rank -> file of the one trace that is there."""
    found = _traces(path)
    if not found:
        raise UserError(f"{path}: no trace is there: files are called PREFIX.RANK.et")
    if len(found) > 1:
        shown = ", ".join(sorted(f"{prefix}.*.{suffix}" for prefix, suffix in found)[:5])
        raise UserError(f"{path}: there are several traces ({shown}): name one by a file of it, or by its prefix")
    ((prefix, suffix),) = found
    return prefix, suffix, found[prefix, suffix]


def _traces(path: Path) -> dict[tuple[str, str], dict[int, Path]]:
    """(prefix, suffix) -> rank -> file, of all that the path may mean."""
    one = NAME.fullmatch(path.name)
    folder, wanted = path, None
    if one is not None and path.is_file():
        folder, wanted = path.parent, (one["prefix"], one["suffix"])
    elif path.is_file() and path.suffix.removeprefix(".") in PARSERS:
        return {(path.stem, path.suffix.removeprefix(".")): {0: path}}
    elif not path.is_dir():
        folder, wanted = path.parent, (path.name, "")
    found: dict[tuple[str, str], dict[int, Path]] = defaultdict(dict)
    try:
        for file in sorted(folder.iterdir()):
            parts = NAME.fullmatch(file.name)
            if parts is None or file.name.startswith("."):
                continue
            prefix, suffix = parts["prefix"], parts["suffix"]
            if wanted is None or (prefix == wanted[0] and suffix.startswith(wanted[1])):
                found[prefix, suffix][int(parts["rank"])] = file
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from None
    if wanted == (one and one["prefix"], "json") and 0 not in found[wanted]:
        return {wanted: {0: path}}  # its number is no rank, but a version's, say
    return found


# ---- Sources ----


class CollectiveSource(AgentConfig):
    """The same collective of all ranks again and again."""

    kind: Literal["collective"] = "collective"
    ranks: int = Field(ge=1)
    operation: Operation = Operation.ALL_REDUCE
    size_bytes: int = Field(ge=0)
    """Size as gradbed.hosts.collectives.schedule.Operation counts it."""
    repetitions: int = Field(default=1, ge=1)
    root: int = Field(default=0, ge=0)
    """Root of the operations that have one."""


class FileSource(AgentConfig):
    """A trace in files."""

    kind: Literal["trace"] = "trace"
    path: Path
    """Path as gradbed.hosts.systems.training.source.open_trace takes it."""
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
