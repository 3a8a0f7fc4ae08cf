"""What the page's server has to show: the recordings of a command's trials, of which the newest may still grow, and
where nodes stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

import networkx

from gradbed.experiments.live.packets import packets_of
from gradbed.experiments.live.recording import FILE, LEAVE, Recording, Row, decoded

# ---- Where nodes stand ----


Place = tuple[float, float]
"""x and y from 0 to 1; y 0 is at the top."""

MOST_SPRINGS = 150
"""Nodes for which the better of the two layouts by forces takes no second."""


def places(nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]) -> dict[str, Place]:
    """nodes: name and tier (None: a host); links: a and b."""
    graph = networkx.Graph()
    graph.add_nodes_from(node["name"] for node in nodes)
    graph.add_edges_from((link["a"], link["b"]) for link in links)
    tiers = _tiers(nodes, graph)
    switches = sum(1 for node in nodes if node["tier"] is not None)
    if len(tiers) < 3 and switches > 1:
        return _by_forces(graph)
    return _in_rows(tiers, graph)


def _tiers(nodes: Sequence[Mapping[str, Any]], graph: networkx.Graph) -> list[list[str]]:
    """From the hosts upwards: a tier stands above those that are nearer to hosts."""
    hosts = [node["name"] for node in nodes if node["tier"] is None]
    near = networkx.multi_source_dijkstra_path_length(graph, hosts) if hosts else {}
    members: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if node["tier"] is not None:
            members[node["tier"]].append(node["name"])
    above = sorted(members, key=lambda tier: (fmean(near.get(name, 0) for name in members[tier]), tier))
    return [hosts, *(members[tier] for tier in above)]


def _in_rows(tiers: Sequence[Sequence[str]], graph: networkx.Graph) -> dict[str, Place]:
    found: dict[str, Place] = {}
    height = max(1, len(tiers) - 1)
    for row, tier in enumerate(tiers):
        below = {name: [found[other][0] for other in graph[name] if other in found] for name in tier}
        ordered = sorted(tier, key=lambda name: fmean(below[name] or [0.0])) if row else list(tier)
        for place, name in enumerate(ordered):
            found[name] = ((place + 0.5) / len(ordered), 1 - row / height)
    return found


def _by_forces(graph: networkx.Graph) -> dict[str, Place]:
    if len(graph) <= MOST_SPRINGS:
        made = networkx.kamada_kawai_layout(graph)
    else:
        made = networkx.spring_layout(graph, seed=1, iterations=60)
    xs, ys = zip(*made.values(), strict=True)
    width, height = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    return {name: (float((x - min(xs)) / width), float((y - min(ys)) / height)) for name, (x, y) in made.items()}


# ---- Recordings ----


LONGEST_ROW_BYTES = 16_000_000


class Shown(Protocol):
    """What the server asks for."""

    is_live: bool
    generation: int
    """Another number means another recording: pages begin anew."""
    recording: Recording

    def names(self) -> list[str]:
        """Of recordings to choose from."""

    def choose(self, number: int) -> None:
        """Show another one of them."""

    def command(self, command: Mapping[str, Any]) -> None:
        """For the network that is shown; without effect where none runs."""


class Replayed:
    """Recordings of a run that is over."""

    is_live = False

    def __init__(self, files: list[Path]) -> None:
        """UserError if the first one cannot be read."""
        self._files = files
        self._known = {0: Recording.load(files[0])}
        self.generation = 0
        self.recording = self._known[0]

    def names(self) -> list[str]:
        return [file.parent.name for file in self._files]

    def choose(self, number: int) -> None:
        if number not in self._known:
            self._known[number] = Recording.load(self._files[number])
        self.recording = self._known[number]
        self.generation = number

    def command(self, command: Mapping[str, Any]) -> None: ...


class Growing:
    """The recording of a network that runs, told over a channel; each trial of a command begins another one.

    Each is saved in its trial's folder when its trial ends, or the process that ran it has gone."""

    is_live = True

    def __init__(self) -> None:
        self.generation = 0
        self.recording = Recording()
        self.ended = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self.stays = True
        """Whether pages are to be served when the network has gone."""
        self._unsaved = False

    def names(self) -> list[str]:
        return []

    def choose(self, number: int) -> None: ...

    def command(self, command: Mapping[str, Any]) -> None:
        if self._writer is not None and self.is_live:
            self._writer.write(json.dumps(command).encode() + b"\n")

    async def listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take rows in until there are no more."""
        self._writer = writer
        try:
            while line := await reader.readline():
                for row in decoded([line]):
                    self._take(row)
        except (OSError, ValueError):
            pass  # it has gone in the middle of a row
        finally:
            # Whatever went wrong, nobody waits for more.
            self._save()
            self.is_live = False
            self.ended.set()

    def _take(self, row: Row) -> None:
        if row["kind"] == LEAVE:
            self.stays = False
            return
        if row["kind"] == "begin":
            self._save()
            self.generation += 1
            self.recording = Recording()
            row = with_places(row)
        if row["kind"] == "captured":
            row = packets_of(row)
        self.recording.add(row)
        self._unsaved = True
        if row["kind"] == "end":
            self._save()

    def _save(self) -> None:
        begin = self.recording.of("begin")
        if self._unsaved and begin:
            with contextlib.suppress(OSError):  # a full disk ends no run
                self.recording.save(Path(begin[0]["folder"]) / FILE)
        self._unsaved = False


def with_places(begin: Row) -> Row:
    """The first row, with where nodes stand on the page."""
    found = places(begin["nodes"], begin["links"])
    nodes = [{**node, "x": found[node["name"]][0], "y": found[node["name"]][1]} for node in begin["nodes"]]
    return {**begin, "nodes": nodes}
