"""A rank's steps, kept short and made when looked at: thousands of ranks carry out collectives in one process.

In a ring rank r + 1 does what rank r does, with all peers and parts one further. A group of 1,024 has four million
steps; together its ranks keep one list of four thousand. Of other steps a rank keeps some 20 bytes each, and shares
what waits for what with the ranks of which it is the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.card_collectives import COPY, SEND
from gradbed.hosts.systems.training.collectives.schedule import Action, Step, Steps, part
from gradbed.hosts.systems.training.collectives.structure import Structure, shared_structure, structure_of

_ACTIONS = tuple(Action)
Integers = TypeVar("Integers", int, NDArray[np.int64])


@dataclass(frozen=True)
class PatternStep:
    """A step of rank 0. peer: how many places further the other rank is. part: of the vector, likewise; None: of no
    part. chunk: of the part."""

    action: Action
    peer: int
    part: int | None
    chunk: int = 0
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """What all ranks of a group do, one place further each. chunks: of each part."""

    steps: tuple[PatternStep, ...]
    group_size: int
    chunks: int = 1

    @cached_property
    def structure(self) -> Structure:
        """With peers as distances."""
        return structure_of([(step.action.value, step.peer, step.after) for step in self.steps])

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """Of each step; -1: of no part."""
        return np.array([-1 if step.part is None else step.part for step in self.steps], np.int64)

    @cached_property
    def step_chunks(self) -> NDArray[np.int64]:
        return np.array([step.chunk for step in self.steps], np.int64)


class StoredSteps(Steps):
    """Any steps of one rank."""

    def __init__(self, steps: Sequence[Step]) -> None:
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

    def _step(self, place: int) -> Step:
        return Step(
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

    def _step(self, place: int) -> Step:
        step = self.pattern.steps[place]
        start, stop = self.range(place)
        source = part(self.elements, self.pattern.group_size, self.rank)[0] if step.action is Action.COPY else 0
        return Step(step.action, self.peer(place), start, stop, step.after, source)

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
        """Of one step or of many. further: of the pattern's part."""
        size, elements, chunks = self.pattern.group_size, self.elements, self.pattern.chunks
        number = (self.rank + further) % size
        start, stop = number * elements // size, (number + 1) * elements // size
        if chunks == 1:
            return start, stop
        length = stop - start
        return start + chunk * length // chunks, start + (chunk + 1) * length // chunks


class ExchangeSteps(PatternSteps):
    """Of an all-to-all: what comes lies behind the vector, in the order of ranks, parts as long as this rank's."""

    def range(self, place: int) -> tuple[int, int]:
        step = self.pattern.steps[place]
        if step.action is Action.SEND or step.part is None:
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
