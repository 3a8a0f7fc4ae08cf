"""What a rank executes: a graph of computations and communications, whatever file it came from.

The kinds of nodes are those of MLCommons Chakra's execution traces. A rank is one accelerator with its network
interface; ranks count from 0. Times are integers of nanoseconds, sizes integers of bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.collectives.schedule import Operation


class Kind(str, Enum):
    """Kinds of nodes."""

    COMPUTE = "compute"
    MEMORY = "memory"
    SEND = "send"
    RECEIVE = "receive"
    COLLECTIVE = "collective"


@dataclass(frozen=True)
class TraceNode:
    """A node of a rank's graph. It begins when all in `after` are complete."""

    number: int
    """Unique within the rank."""
    name: str
    kind: Kind
    after: tuple[int, ...] = ()
    """Numbers of the nodes that it waits for, of data and of control."""
    duration_ns: int = 0
    """Duration of computations and memory accesses; a computation of 0 ns orders others, and occupies nothing."""
    size_bytes: int = 0
    """Size of sends, receives and collectives (Operation says what it counts)."""
    peer: int | None = None
    """The other rank of a send or receive."""
    tag: int = 0
    """Sends and receives of two ranks match by it, in order."""
    operation: Operation | None = None
    group: tuple[int, ...] = ()
    """The ranks of a collective, in order; empty: all. The k-th collective of a group among a rank's nodes, in the
    order in which they are given, is the k-th of the group's other ranks."""
    root: int | None = None
    """The rank (not its place in the group) of a broadcast, reduce, gather or scatter."""
    on_cpu: bool = False
    """Whether the host's processor computes it, not the accelerator; each of them computes one node at a time."""


# ---- Graphs in columns of numbers: 50 bytes a node instead of 500, and what ranks have alike they share ----


KINDS = tuple(Kind)
OPERATIONS = tuple(Operation)
NONE = -1
"""In a column: no peer, operation or root."""

Column = NDArray[Any]


class BrokenGraph(ValueError):
    """Nodes that no rank can execute. number: of the node that is wrong."""

    def __init__(self, number: int, name: str, what: str) -> None:
        super().__init__(what)
        self.number = number
        self.name = name


class Communication(NamedTuple):
    """A communication on which other ranks have to agree."""

    place: int
    """Place of the node in its graph."""
    kind: Kind
    size_bytes: int
    peer: int
    """The other rank, NONE without one."""
    tag: int
    operation: Operation | None
    group: tuple[int, ...]
    root: int
    """The root, NONE without one."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of n nodes. Node i has `after` at after_start[i]:after_start[i + 1]."""

    number: Column
    name: Column
    """Places in the graph's tables."""
    kind: Column
    duration_ns: Column
    size_bytes: Column
    peer: Column
    """Places in the graph's tables."""
    tag: Column
    operation: Column
    group: Column
    """Places in the graph's tables."""
    root: Column
    on_cpu: Column
    after_start: Column
    after: Column
    """Places of nodes in the graph, not their numbers."""


_TYPES = {
    "number": np.uint64,
    "name": np.uint32,
    "kind": np.uint8,
    "duration_ns": np.int64,
    "size_bytes": np.int64,
    "peer": np.int32,
    "tag": np.int64,
    "operation": np.int8,
    "group": np.int32,
    "root": np.int32,
    "on_cpu": np.bool_,
    "after_start": np.uint32,
    "after": np.uint32,
}


@dataclass(frozen=True, eq=False)
class RankGraph(Sequence[TraceNode]):
    """The nodes of a rank, in the order of its file."""

    columns: Columns
    names: tuple[str, ...]
    peers: tuple[int, ...]
    """Ranks, which differ where all else is alike."""
    groups: tuple[tuple[int, ...], ...]
    """Ranks, which differ where all else is alike."""

    def __len__(self) -> int:
        return len(self.columns.number)

    @overload
    def __getitem__(self, place: int) -> TraceNode: ...

    @overload
    def __getitem__(self, place: slice) -> list[TraceNode]: ...

    def __getitem__(self, place: int | slice) -> TraceNode | list[TraceNode]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        of = self.columns
        after = of.after[of.after_start[place] : of.after_start[place + 1]]
        peer, operation, group, root = (int(column[place]) for column in (of.peer, of.operation, of.group, of.root))
        return TraceNode(
            number=int(of.number[place]),
            name=self.names[of.name[place]],
            kind=KINDS[of.kind[place]],
            after=tuple(of.number[after].tolist()),
            duration_ns=int(of.duration_ns[place]),
            size_bytes=int(of.size_bytes[place]),
            peer=None if peer == NONE else self.peers[peer],
            tag=int(of.tag[place]),
            operation=None if operation == NONE else OPERATIONS[operation],
            group=() if group == NONE else self.groups[group],
            root=None if root == NONE else root,
            on_cpu=bool(of.on_cpu[place]),
        )

    def communications(self) -> Iterator[Communication]:
        """Sends, receives and collectives, in order."""
        of = self.columns
        kinds = [_KIND_PLACES[kind] for kind in (Kind.SEND, Kind.RECEIVE, Kind.COLLECTIVE)]
        places = np.isin(of.kind, kinds).nonzero()[0]
        columns = (of.kind, of.size_bytes, of.peer, of.tag, of.operation, of.group, of.root)
        rows = zip(places.tolist(), *(column[places].tolist() for column in columns), strict=True)
        for place, kind, size, peer, tag, operation, group, root in rows:
            yield Communication(
                place,
                KINDS[kind],
                size,
                NONE if peer == NONE else self.peers[peer],
                tag,
                None if operation == NONE else OPERATIONS[operation],
                () if group == NONE else self.groups[group],
                root,
            )

    def after(self, place: int) -> Column:
        """Places of the nodes that the one at this place waits for."""
        of = self.columns
        return of.after[of.after_start[place] : of.after_start[place + 1]]

    def waits_for(self) -> Column:
        """Return how many nodes each waits for; a new array."""
        return np.diff(self.columns.after_start.astype(np.int64))

    def followers(self, place: int) -> Column:
        """Places of the nodes that wait for the one at this place, in order."""
        start, followers = self._followers
        return followers[start[place] : start[place + 1]]

    @cached_property
    def _followers(self) -> tuple[Column, Column]:
        of = self.columns
        waiting = np.repeat(np.arange(len(self), dtype=np.uint32), self.waits_for())
        order = np.argsort(of.after, kind="stable")
        start = np.zeros(len(self) + 1, dtype=np.uint32)
        start[1:] = np.cumsum(np.bincount(of.after, minlength=len(self)))
        return start, waiting[order]


class Pool:
    """Columns and tables that graphs share."""

    def __init__(self) -> None:
        self._columns: dict[bytes, Column] = {}
        self._tables: dict[Any, Any] = {}

    def shared(self, graph: RankGraph) -> RankGraph:
        """The graph, with what others before had alike."""
        columns = Columns(**{each.name: self._column(getattr(graph.columns, each.name)) for each in fields(Columns)})
        groups = tuple(self._tables.setdefault(group, group) for group in graph.groups)
        names = self._tables.setdefault(graph.names, graph.names)
        return RankGraph(columns, names, graph.peers, self._tables.setdefault(groups, groups))

    def _column(self, column: Column) -> Column:
        digest = hashlib.blake2b(column.tobytes(), digest_size=16, person=column.dtype.str.encode()).digest()
        return self._columns.setdefault(digest, column)


def graph_of(nodes: Iterable[TraceNode]) -> RankGraph:
    """BrokenGraph for two nodes of a number, a dependency that is not there, and nodes that wait for each other."""
    listed = list(nodes)
    places: dict[int, int] = {}
    for place, node in enumerate(listed):
        if places.setdefault(node.number, place) != place:
            raise BrokenGraph(node.number, node.name, "another node has the same number")
    after: list[int] = []
    after_start = [0]
    for node in listed:
        try:
            after += dict.fromkeys(places[number] for number in node.after)
        except KeyError as error:
            raise BrokenGraph(node.number, node.name, f"it waits for node {error}, which is not there") from None
        after_start.append(len(after))
    names, peers, groups = (_Values() for _ in range(3))
    columns: dict[str, Any] = {
        "number": [node.number for node in listed],
        "name": [names.place(node.name) for node in listed],
        "kind": [_KIND_PLACES[node.kind] for node in listed],
        "duration_ns": [node.duration_ns for node in listed],
        "size_bytes": [node.size_bytes for node in listed],
        "peer": [NONE if node.peer is None else peers.place(node.peer) for node in listed],
        "tag": [node.tag for node in listed],
        "operation": [NONE if node.operation is None else _OPERATION_PLACES[node.operation] for node in listed],
        "group": [groups.place(node.group) if node.group else NONE for node in listed],
        "root": [NONE if node.root is None else node.root for node in listed],
        "on_cpu": [node.on_cpu for node in listed],
        "after_start": after_start,
        "after": after,
    }
    made = Columns(**{name: np.array(values, dtype=_TYPES[name]) for name, values in columns.items()})
    graph = RankGraph(made, names.values(), peers.values(), groups.values())
    _refuse_circles(graph)
    return graph


_KIND_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_OPERATION_PLACES = {operation: place for place, operation in enumerate(OPERATIONS)}


class _Values:
    """Values and their places."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        return self._places.setdefault(value, len(self._places))

    def values(self) -> tuple[Any, ...]:
        return tuple(self._places)


def _refuse_circles(graph: RankGraph) -> None:
    waits_for = graph.waits_for()
    if np.all(graph.columns.after < np.repeat(np.arange(len(graph)), waits_for)):
        return  # each waits for those before it
    left = waits_for.tolist()
    ready = [place for place, count in enumerate(left) if count == 0]
    done = 0
    while ready:
        done += 1
        for follower in graph.followers(ready.pop()).tolist():
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    if done < len(graph):
        raise _circle(graph, left)


def _circle(graph: RankGraph, left: list[int]) -> BrokenGraph:
    """left: how many nodes each still waits for; those with some are in circles, or behind one."""
    place = next(place for place, count in enumerate(left) if count)
    seen: dict[int, int] = {}
    while place not in seen:
        seen[place] = len(seen)
        place = next(int(each) for each in graph.after(place) if left[each])
    circle = [int(graph.columns.number[each]) for each, order in seen.items() if order >= seen[place]]
    shown = ", ".join(map(str, circle[:5])) + (", ..." if len(circle) > 5 else "")
    name = graph.names[graph.columns.name[place]]
    others = f"nodes {shown} wait for each other in a circle" if len(circle) > 1 else "it waits for itself"
    return BrokenGraph(int(graph.columns.number[place]), name, others)
