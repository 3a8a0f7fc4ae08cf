"""What the live view has shown of a trial: rows in the order in which they were told, bounded, in one file.

The file (trials/DIGEST/live.jsonl.gz) has one JSON object a line; `kind` says what a row is, t_us when it was told,
in nominal microseconds of the network since it came up.

begin     version, title, system, clock, scale, nodes (name, tier, x, y, ip), links (a, b, a_port, b_port, rate_bps,
          delay_us, queue_packets), programs (source by switch)
phase     name, and whether it `begins` or has ended
frame     links: by the number of a direction (2 x the link's, +1 from b to a) what it has carried since the network
          came up: packets, bytes, queue_drops, and queued, the packets that wait now (null: nobody tells); directions
          that are as they were are left out
progress  bars: label, completed, total, note
value     phase, job, name, round, value: what an agent told of a round
event     text, level (note, fault)
plan      switch, plan: what it should hold now (gradbed.controller.planning.plan.SwitchPlan)
switch    switch, counters, registers: what it held, cells that are not zero (of large arrays the size)
packets   link, packets: from (the sender), t_us, length, frame (hexadecimal)
clock     paused, speed (null: as fast as possible); virtual clock
end       the trial is over"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Protocol, TextIO

import networkx

from gradbed.common.errors import UserError
from gradbed.experiments.live.packets import packets_of

FILE = "live.jsonl.gz"
VERSION = 1

LEAVE = "leave"
"""The kind of a row that is not kept: the command was given up, and its page goes, too."""

Row = Mapping[str, Any]

MOST: Mapping[str, int] = {
    "frame": 2000,
    "value": 20_000,
    "progress": 2000,
    "switch": 2000,
    "event": 5000,
    "packets": 100,
    "plan": 1000,
    "clock": 500,
    "phase": 500,
}
"""Rows of a kind that are kept."""

MOST_BYTES = 8_000_000
"""Of all rows of one kind."""
MOST_LINE_CHARACTERS = 2 * MOST_BYTES
MOST_FILE_CHARACTERS = 16 * MOST_BYTES
"""Of a file, unpacked: rows of ten kinds, and what a single row may have more."""

FIELDS: Mapping[str, Mapping[str, type]] = {
    "begin": {"version": int},
    "phase": {"name": str},
    "frame": {"links": dict},
    "progress": {"bars": list},
    "value": {"round": int, "name": str},
    "event": {"text": str},
    "plan": {"switch": str, "plan": dict},
    "switch": {"switch": str},
    "packets": {"link": object, "packets": list},
    "clock": {"paused": bool},
    "end": {},
}
"""What a row of each kind has at least."""

THINNED = ("frame", "progress", "switch", "value")
"""Of these every second row goes when there are too many; of others the older half."""


class Kept(NamedTuple):
    """number: in the order of telling, from 1; it stays when rows between go."""

    number: int
    row: Row
    size: int


class Recording:
    """Rows of one trial. `add` keeps the number of rows, and so memory and file, bounded."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[Kept]] = {}
        self._sizes: dict[str, int] = {}
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the newest row; 0 if there is none."""
        return self._last

    def add(self, row: Row) -> None:
        self._last += 1
        kind = str(row["kind"])
        kept = self._kinds.setdefault(kind, [])
        kept.append(Kept(self._last, row, len(json.dumps(row))))
        self._sizes[kind] = self._sizes.get(kind, 0) + kept[-1].size
        if len(kept) > MOST.get(kind, MOST["event"]) or (self._sizes[kind] > MOST_BYTES and len(kept) > 1):
            self._kinds[kind] = thinned(kind, kept)
            self._sizes[kind] = sum(each.size for each in self._kinds[kind])

    def after(self, number: int) -> list[Kept]:
        """Rows that were told later than that one, in order."""
        found: list[Kept] = []
        for kept in self._kinds.values():
            found += kept[bisect_right(kept, number, key=lambda each: each.number) :]
        return sorted(found)

    def of(self, kind: str) -> list[Row]:
        return [each.row for each in self._kinds.get(kind, ())]

    def save(self, file: Path) -> None:
        """Write the file atomically."""
        scratch = file.with_suffix(".part")
        with gzip.open(scratch, "wt", encoding="utf-8", compresslevel=6) as out:
            for each in self.after(0):
                out.write(json.dumps(each.row, separators=(",", ":")) + "\n")
        scratch.replace(file)

    @classmethod
    def load(cls, file: Path) -> Recording:
        """Read a recording.

        Raises:
            UserError: the file holds no recording of this version.
        """
        recording = cls()
        try:
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                for number, line in enumerate(_lines(lines), 1):
                    recording.add(_row(line, number))
        except (OSError, EOFError, zlib.error):
            raise UserError(f"{file} is no recording of a live view: it cannot be unpacked") from None
        except ValueError as error:
            raise UserError(f"{file} is no recording of a live view: {error}") from None
        begin = recording.of("begin")
        if not begin:
            raise UserError(f"{file} is no recording of a live view: it has no row 'begin'")
        version = begin[0]["version"]
        if version != VERSION:
            raise UserError(
                f"{file} was recorded by another version of gradbed ({version}, this one reads {VERSION})"
            )
        return recording


def _lines(stream: TextIO) -> Iterator[str]:
    """Yield the lines of an unpacked file.

    Raises:
        ValueError: it has more than a recording can.
    """
    left = MOST_FILE_CHARACTERS
    while line := stream.readline(MOST_LINE_CHARACTERS):
        left -= len(line)
        if left < 0 or len(line) == MOST_LINE_CHARACTERS:
            raise ValueError("it is larger than recordings are")
        yield line


def _row(line: str, number: int) -> Row:
    """Return the row of a line.

    Raises:
        ValueError: it is no row; the message has its line number, from 1.
    """
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"line {number} is no JSON") from None
    kind = row.get("kind") if isinstance(row, dict) else None
    if not isinstance(kind, str) or kind not in FIELDS:
        raise ValueError(f"line {number} is no row of a kind that recordings have")
    for name, type_ in FIELDS[kind].items():
        if name not in row or not isinstance(row[name], type_):
            raise ValueError(f"line {number} is a row {kind!r} whose {name} is missing or of another type")
    return dict(row)


def thinned(kind: str, kept: list[Kept]) -> list[Kept]:
    """Return about half of the rows."""
    if kind not in THINNED:
        return kept[len(kept) // 2 :]
    if kind == "frame":
        return _merged_frames(kept)
    groups: dict[Any, list[Kept]] = {}
    for each in kept:
        row = each.row
        groups.setdefault((row.get("switch"), row.get("phase"), row.get("name"), row.get("job")), []).append(each)
    return sorted(each for group in groups.values() for each in _every_second(kind, group))


def _every_second(kind: str, group: list[Kept]) -> list[Kept]:
    """The newest stays. Of values: of every second round, whoever told them."""
    if kind != "value":
        return group[::-2][::-1]
    rounds = sorted({each.row["round"] for each in group})
    wanted = set(rounds[::-2])
    return [each for each in group if each.row["round"] in wanted]


def _merged_frames(kept: list[Kept]) -> list[Kept]:
    """Merge every second frame into the next one; the newest stays."""
    rest = kept[:-1]
    merged = []
    for first, second in zip(rest[::2], rest[1::2], strict=False):
        row = {**second.row, "links": {**first.row["links"], **second.row["links"]}}
        merged.append(Kept(second.number, row, len(json.dumps(row))))
    return [*merged, *(rest[-1:] if len(rest) % 2 else []), kept[-1]]


def recordings(run: Path) -> list[Path]:
    """Return the recordings of a run's trials, in the order in which they were made.

    Raises:
        UserError: there are none.
    """
    if run.is_file():
        return [run]
    if not run.is_dir():
        raise UserError(f"there is no run {run}: give the folder of a run, such as results/aggregation/latest")
    found = sorted([*run.glob(f"trials/*/{FILE}"), *run.glob(FILE)], key=lambda file: file.stat().st_mtime)
    if not found:
        raise UserError(f"{run} has no recording: runs leave one with --live")
    return found


def decoded(lines: Iterable[bytes]) -> list[Row]:
    """Return the rows of JSON lines."""
    return [json.loads(line) for line in lines]


# ---- Layout of the network ----


Place = tuple[float, float]
"""x and y from 0 to 1; y 0 is at the top."""

MOST_SPRINGS = 150
"""Nodes for which the better of the two layouts by forces takes no second."""


def places(nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]) -> dict[str, Place]:
    """Return the position of each node.

    Args:
        nodes: name and tier of each (None: a host).
        links: a and b of each.
    """
    graph = networkx.Graph()
    graph.add_nodes_from(node["name"] for node in nodes)
    graph.add_edges_from((link["a"], link["b"]) for link in links)
    tiers = _tiers(nodes, graph)
    switches = sum(1 for node in nodes if node["tier"] is not None)
    if len(tiers) < 3 and switches > 1:
        return _by_forces(graph)
    return _in_rows(tiers, graph)


def _tiers(nodes: Sequence[Mapping[str, Any]], graph: networkx.Graph) -> list[list[str]]:
    """Return the tiers from the hosts upwards: a tier is above those that are nearer to hosts."""
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


# ---- What the page shows ----


LONGEST_ROW_BYTES = 16_000_000


class RecordingSource(Protocol):
    """The recording that the page shows, and the choice of another one."""

    is_live: bool
    generation: int
    """Changes when another recording is shown; pages then start anew."""
    recording: Recording

    def names(self) -> list[str]:
        """Return the names of recordings to choose from."""

    def choose(self, number: int) -> None:
        """Show another recording."""

    def command(self, command: Mapping[str, Any]) -> None:
        """Send a command to the running network; no effect on a replay."""


class ReplaySource:
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


class LiveSource:
    """The growing recording of a running network; each trial of a command begins another one.

    Each is saved in its trial's folder when its trial ends, or when the process that ran it is gone.
    """

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
            # Whatever went wrong, no client waits for more.
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
    """Return the row "begin" with the positions of nodes on the page."""
    found = places(begin["nodes"], begin["links"])
    nodes = [{**node, "x": found[node["name"]][0], "y": found[node["name"]][1]} for node in begin["nodes"]]
    return {**begin, "nodes": nodes}
