"""Chakra's execution traces from their files: PREFIX.RANK.et, one for each rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.traces.chakra import messages
from gradbed.hosts.systems.training.traces.chakra.groups import Groups, read_groups
from gradbed.hosts.systems.training.traces.chakra.nodes import Reading
from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile, Record
from gradbed.hosts.systems.training.traces.graph import BrokenGraph, Pool, RankGraph, graph_of
from gradbed.hosts.systems.training.traces.settings import TraceSettings
from gradbed.hosts.systems.training.traces.trace import Trace

NAME = re.compile(r"(?P<prefix>.+?)\.(?P<rank>\d{1,6})\.(?P<suffix>et|json)(?:\.gz)?")
GROUPS_SUFFIX = ".groups.json"
MOST_KNOWN_MESSAGES = 200_000
"""That are kept for the next rank's file."""

Parse = Callable[[bytes, dict[bytes, Record]], Iterator[Record]]


class ChakraTrace(Trace):
    """files: rank -> its file; every rank has one."""

    def __init__(self, name: str, files: Mapping[int, Path], parse: Parse, settings: TraceSettings) -> None:
        super().__init__()
        self.name = name
        self.ranks = len(files)
        self._files = files
        self._parse = parse
        self._settings = settings
        self._groups = self._read_groups()
        self._known: dict[bytes, Record] = {}
        self._pool = Pool()

    def place(self, rank: int) -> str:
        return f"{self._files[rank]}: rank {rank}"

    def _read(self, rank: int) -> RankGraph:
        file = self._files[rank]
        if len(self._known) > MOST_KNOWN_MESSAGES:
            self._known.clear()
        try:
            data = messages.content(file)
            records = self._parse(data, self._known)
            graph = graph_of(Reading(rank, self.ranks, self._settings, self._groups).nodes(records))
            return self._pool.shared(graph)
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
        except BrokenFile as error:
            raise UserError(f"{self.place(rank)}: {error}") from None
        except BrokenGraph as error:
            raise UserError(f"{self.place(rank)}, node {error.number} ({_shown(error.name)}): {error}") from None

    def _read_groups(self) -> Groups:
        file = self._settings.groups
        if file is None:
            folder = self._files[0].parent
            prefix = NAME.fullmatch(self._files[0].name)
            beside = folder / f"{prefix['prefix'] if prefix else ''}{GROUPS_SUFFIX}"
            file = beside if beside.is_file() else None
        return read_groups(file, self.ranks) if file is not None else {}


def _shown(name: str) -> str:
    """In one line of a message."""
    flat = " ".join(name.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
