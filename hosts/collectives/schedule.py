"""What a rank does in a collective: sends and receives of parts of one buffer, and what each waits for.

Thousands of ranks carry out collectives in one process, so steps are kept short and made when looked at. In a ring
rank r + 1 does what rank r does, with all peers and parts one further. A group of 1,024 has four million steps;
together its ranks keep one list of four thousand. Of other steps a rank keeps some 20 bytes each, and shares what
waits for what with the ranks of which it is the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.queue_pairs import ADD, COPY, RECEIVE, SEND, Lists, NicSchedule

# ---- What is asked ----


class Operation(str, Enum):
    """Operations of collectives. The size of one is that of each rank's input.

    all-reduce, reduce: the vector. reduce-scatter: the vector, of which the rank keeps one part. all-gather, gather:
    the rank's own part. all-to-all: all that the rank sends, equal parts for each rank of the group, itself included.
    scatter: the root's vector. broadcast: the vector. barrier: 0.
    """

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"


@dataclass(frozen=True)
class CollectiveCall:
    """A rank's request to an algorithm: its part of one collective."""

    group_size: int
    rank: int
    """Place in the group, from 0."""
    elements: int
    """Length of the whole vector; that of an all-gather has the parts of all ranks."""
    chunks: int = 1
    """Parts that follow each other, so that steps overlap."""
    root: int = 0
    """Place of the root in the group."""
    racks: tuple[int, ...] | None = None
    """The rack of each rank, if they are known."""
    inside: str = "ring"
    """Algorithm inside racks, for hierarchical ones."""
    between: str = "ring"
    """Algorithm between racks."""


# ---- What steps wait for, without ranges: all that decides which of them may begin ----


@dataclass(frozen=True)
class Structure:
    """The dependencies of a schedule's steps, by their places."""

    after: tuple[tuple[int, ...], ...]
    """Steps that each step waits for."""
    dependents: tuple[tuple[int, ...], ...]
    """Steps that wait for each step."""
    waits: tuple[int, ...]
    """Number of steps that each step waits for."""
    first: tuple[int, ...]
    """Steps that wait for none."""
    receives: dict[int, tuple[int, ...]]
    """For each peer the receives from it, in order."""
    turn: tuple[int, ...]
    """For each send, which of those to its peer it is (others: 0)."""
    kinds: bytes
    """Kind of each step, as in gradbed.hosts.agents.queue_pairs."""
    peers: tuple[int, ...]
    """Peer of each step, by keys that ranks may share (Steps.key)."""

    @cached_property
    def first_of_each_peer(self) -> tuple[int, ...]:
        """A message of each, by place."""
        firsts: dict[int, int] = {}
        for place, (peer, kind) in enumerate(zip(self.peers, self.kinds, strict=True)):
            if kind != COPY:
                firsts.setdefault(peer, place)
        return tuple(firsts.values())

    @cached_property
    def on_nic(self) -> NicSchedule:
        """The same for a NIC; its peers are those of first_of_each_peer, in that order."""
        keys = [self.peers[place] for place in self.first_of_each_peer]
        places = {key: place for place, key in enumerate(keys)}
        return NicSchedule(
            kinds=np.frombuffer(self.kinds, np.uint8),
            waits=np.array(self.waits, np.uint32),
            dependents=_lists(self.dependents),
            peer=np.array([places.get(key, 0) for key in self.peers], np.uint32),
            turn=np.array(self.turn, np.uint32),
            receives=_lists([self.receives.get(key, ()) for key in keys]),
        )


def _lists(lists: Sequence[Sequence[int]]) -> Lists:
    ends = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
    return ends, np.fromiter(chain.from_iterable(lists), np.uint32, int(ends[-1]))


_KINDS = {"send": SEND, "receive": RECEIVE, "add": ADD, "copy": COPY}


def structure_of(steps: Iterable[tuple[str, int, tuple[int, ...]]]) -> Structure:
    """Return the structure of steps: of each its action, its peer's key and the places of steps that it waits for."""
    actions, peers, after = zip(*steps, strict=True) if (steps := tuple(steps)) else ((), (), ())
    dependents: list[list[int]] = [[] for _ in after]
    turn = []
    kinds = bytes(_KINDS[action] for action in actions)
    sends: defaultdict[int, int] = defaultdict(int)
    receives: defaultdict[int, list[int]] = defaultdict(list)
    for place, (kind, peer) in enumerate(zip(kinds, peers, strict=True)):
        turn.append(sends[peer] if kind == SEND else 0)
        if kind == SEND:
            sends[peer] += 1
        elif kind != COPY:
            receives[peer].append(place)
        for earlier in after[place]:
            dependents[earlier].append(place)
    return Structure(
        after=after,
        dependents=tuple(map(tuple, dependents)),
        waits=tuple(map(len, after)),
        first=tuple(place for place, earlier in enumerate(after) if not earlier),
        receives={peer: tuple(places) for peer, places in receives.items()},
        turn=tuple(turn),
        kinds=kinds,
        peers=peers,
    )


@lru_cache(1024)
def shared_structure(steps: tuple[tuple[str, int, tuple[int, ...]], ...]) -> Structure:
    """Return the same structure for equal steps."""
    return structure_of(steps)


# ---- Schedules ----


class CollectiveAction(str, Enum):
    """Actions of steps."""

    SEND = "send"
    RECEIVE = "receive"
    """What comes takes the place of what was there."""
    ADD = "add"
    """What comes is added to what was there."""
    COPY = "copy"
    """A copy of the rank's own elements from `source` on. An empty one only joins what it waits for."""


@dataclass(frozen=True)
class CollectiveStep:
    """A send or receive of the elements start:stop of a rank's buffer. Without elements, it is an empty message."""

    action: CollectiveAction
    peer: int
    """The other rank's place in the group. The i-th send to a peer is for its i-th receive from this rank, in the
    order of steps; they may be sent in another order, so a message says its `turn` i (Progress)."""
    start: int
    stop: int
    after: tuple[int, ...] = ()
    """Places of this rank's own steps, all earlier ones, that must be complete before it begins; a send is complete
    when its peer has it, a receive when all of it has come and is in the buffer. A message may come before its step
    may begin: then it waits."""
    source: int = 0
    """First element that a copy takes; its peer is the rank itself."""


class Steps(Sequence[CollectiveStep], ABC):
    """A rank's steps, and by their places what can be told without making them (below are two kinds)."""

    structure: Structure
    """What waits for what, for Progress; ranks that do the same share it."""

    @property
    def peers(self) -> frozenset[int]:
        """Whom the rank sends to or receives from."""
        return frozenset(map(self.peer, self.structure.first_of_each_peer))

    @abstractmethod
    def key(self, peer: int) -> int:
        """A peer's key in the structure."""

    @abstractmethod
    def peer(self, place: int) -> int:
        """Return the peer of a step."""

    @abstractmethod
    def range(self, place: int) -> tuple[int, int]:
        """Return start and stop of a step."""

    @abstractmethod
    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and stop of each step, each of shape (steps,)."""

    @abstractmethod
    def sources(self) -> NDArray[np.int64]:
        """Return the source of each step, of shape (steps,)."""

    @abstractmethod
    def _step(self, place: int) -> CollectiveStep: ...

    def __len__(self) -> int:
        return len(self.structure.waits)

    def __iter__(self) -> Iterator[CollectiveStep]:
        return map(self._step, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> CollectiveStep: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[CollectiveStep]: ...
    def __getitem__(self, place: int | slice) -> CollectiveStep | Sequence[CollectiveStep]:
        places = range(len(self))[place]
        return self._step(places) if isinstance(places, int) else [self._step(each) for each in places]


@dataclass(frozen=True)
class Schedule:
    """A rank's part of a collective. Do not modify: equal calls share it."""

    steps: Steps
    """Steps, which are made when they are first read."""
    elements: int
    """Length of the rank's buffer."""
    input_start: int
    """First element of the rank's input."""
    input_stop: int
    """End of the rank's input."""
    output_start: int
    """First element of the result after the last step."""
    output_stop: int
    """End of the result; equal to output_start if there is none."""


def part(elements: int, parts: int, number: int) -> tuple[int, int]:
    """Start and stop of one of the parts of a vector. Their lengths differ by at most one element."""
    return number * elements // parts, (number + 1) * elements // parts


# ---- Steps kept short ----


_ACTIONS = tuple(CollectiveAction)
Integers = TypeVar("Integers", int, NDArray[np.int64])


@dataclass(frozen=True)
class PatternStep:
    """A step of rank 0."""

    action: CollectiveAction
    peer: int
    """How many places further the other rank is."""
    part: int | None
    """Distance to the part of the vector, counted like `peer`; None: of no part."""
    chunk: int = 0
    """Chunk of the part."""
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """The steps that all ranks of a group take, one place further each."""

    steps: tuple[PatternStep, ...]
    group_size: int
    chunks: int = 1
    """Number of chunks of each part."""

    @cached_property
    def structure(self) -> Structure:
        """Return the structure, with peers as distances."""
        return structure_of([(step.action.value, step.peer, step.after) for step in self.steps])

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """Return the part of each step; -1: of no part."""
        return np.array([-1 if step.part is None else step.part for step in self.steps], np.int64)

    @cached_property
    def step_chunks(self) -> NDArray[np.int64]:
        return np.array([step.chunk for step in self.steps], np.int64)


class StoredSteps(Steps):
    """Any steps of one rank."""

    def __init__(self, steps: Sequence[CollectiveStep]) -> None:
        self._actions = bytes(_ACTIONS.index(step.action) for step in steps)
        self._starts = array("q", (step.start for step in steps))
        self._stops = array("q", (step.stop for step in steps))
        self._sources = {place: step.source for place, step in enumerate(steps) if step.source}
        self._keys: dict[int, int] = {}
        for step in steps:
            self._keys.setdefault(step.peer, len(self._keys))
        self._peers = tuple(self._keys)
        self.structure = shared_structure(
            tuple((step.action.value, self._keys[step.peer], step.after) for step in steps)
        )

    def key(self, peer: int) -> int:
        return self._keys.get(peer, -1)

    def peer(self, place: int) -> int:
        return self._peers[self.structure.peers[place]]

    def range(self, place: int) -> tuple[int, int]:
        return self._starts[place], self._stops[place]

    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array(self._starts, np.int64), np.array(self._stops, np.int64)

    def sources(self) -> NDArray[np.int64]:
        return np.array([self._sources.get(place, 0) for place in range(len(self))], np.int64)

    def _step(self, place: int) -> CollectiveStep:
        return CollectiveStep(
            _ACTIONS[self._actions[place]],
            self.peer(place),
            *self.range(place),
            self.structure.after[place],
            self._sources.get(place, 0),
        )


class PatternSteps(Steps):
    """A pattern's steps for one rank and a vector of so many elements."""

    def __init__(self, pattern: Pattern, rank: int, elements: int) -> None:
        self.pattern, self.rank, self.elements = pattern, rank, elements
        self.structure = pattern.structure

    def key(self, peer: int) -> int:
        return (peer - self.rank) % self.pattern.group_size

    def _step(self, place: int) -> CollectiveStep:
        step = self.pattern.steps[place]
        start, stop = self.range(place)
        source = (
            part(self.elements, self.pattern.group_size, self.rank)[0] if step.action is CollectiveAction.COPY else 0
        )
        return CollectiveStep(step.action, self.peer(place), start, stop, step.after, source)

    def peer(self, place: int) -> int:
        return (self.rank + self.structure.peers[place]) % self.pattern.group_size

    def range(self, place: int) -> tuple[int, int]:
        step = self.pattern.steps[place]
        return (0, 0) if step.part is None else self._bounds(step.part, step.chunk)

    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        pattern = self.pattern
        starts, stops = self._bounds(pattern.parts, pattern.step_chunks)
        of_none = pattern.parts < 0
        starts[of_none] = stops[of_none] = 0
        return starts, stops

    def sources(self) -> NDArray[np.int64]:
        own, _ = part(self.elements, self.pattern.group_size, self.rank)
        return np.where(np.frombuffer(self.structure.kinds, np.uint8) == COPY, own, 0)

    def _bounds(self, further: Integers, chunk: Integers) -> tuple[Integers, Integers]:
        """Return the bounds of one step or of many. further: of the pattern's part."""
        size, elements, chunks = self.pattern.group_size, self.elements, self.pattern.chunks
        number = (self.rank + further) % size
        start, stop = number * elements // size, (number + 1) * elements // size
        if chunks == 1:
            return start, stop
        length = stop - start
        return start + chunk * length // chunks, start + (chunk + 1) * length // chunks


class ExchangeSteps(PatternSteps):
    """The steps of an all-to-all: what comes lies behind the vector, in the order of ranks, parts as long as this
    rank's.
    """

    def range(self, place: int) -> tuple[int, int]:
        step = self.pattern.steps[place]
        if step.action is CollectiveAction.SEND or step.part is None:
            return super().range(place)
        start, stop = part(self.elements, self.pattern.group_size, self.rank)
        begin = self.elements + (self.rank + step.part) % self.pattern.group_size * (stop - start)
        return begin, begin + stop - start

    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts, stops = super().ranges()
        first, last = part(self.elements, self.pattern.group_size, self.rank)
        comes = (np.frombuffer(self.structure.kinds, np.uint8) != SEND) & (self.pattern.parts >= 0)
        number = (self.rank + self.pattern.parts[comes]) % self.pattern.group_size
        starts[comes] = self.elements + number * (last - first)
        stops[comes] = starts[comes] + last - first
        return starts, stops
